"""Text classification with transformers' Trainer, in its examples' style; the texts are random token ids."""

import argparse

import torch
from torch.utils.data import Dataset
from transformers import AutoModelForSequenceClassification, BertConfig, Trainer, TrainingArguments


class RandomTexts(Dataset):
    """Stands for a tokenized data set, which would be downloaded."""

    def __getitem__(self, index):
        return {
            "input_ids": torch.randint(0, 30522, (128,)),
            "attention_mask": torch.ones(128, dtype=torch.long),
            "labels": index % 2,
        }

    def __len__(self):
        return 10_000


def compute_metrics(prediction):
    return {"accuracy": (prediction.predictions.argmax(-1) == prediction.label_ids).mean()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    config = BertConfig(num_hidden_layers=4, hidden_size=256, num_attention_heads=4, intermediate_size=1024)
    model = AutoModelForSequenceClassification.from_config(config)
    training_args = TrainingArguments(
        output_dir="my_awesome_model",
        learning_rate=2e-5,
        per_device_train_batch_size=16,
        num_train_epochs=2,
        weight_decay=0.01,
        logging_steps=1,
        save_strategy="epoch",
        dataloader_num_workers=args.workers,
        report_to="none",
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=RandomTexts(), compute_metrics=compute_metrics)
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
