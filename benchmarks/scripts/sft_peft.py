"""Supervised fine-tuning with PEFT's LoRA, in the style of TRL's scripts; the texts are random token ids."""

from dataclasses import dataclass, field

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, HfArgumentParser, LlamaConfig, Trainer, TrainingArguments


@dataclass
class ScriptArguments:
    max_length: int = field(default=256)
    lora_r: int = field(default=16)
    gradient_checkpointing: bool = field(default=True)


class RandomChats(Dataset):
    """Stands for a tokenized chat data set, which would be downloaded."""

    def __init__(self, max_length):
        self.max_length = max_length

    def __getitem__(self, index):
        input_ids = torch.randint(0, 8192, (self.max_length - index % 7,))
        return {"input_ids": input_ids, "labels": input_ids.clone()}

    def __len__(self):
        return 2000


def collate(examples):
    """Pad to the longest sequence of the batch."""
    pad = torch.nn.utils.rnn.pad_sequence
    return {
        "input_ids": pad([example["input_ids"] for example in examples], batch_first=True),
        "labels": pad([example["labels"] for example in examples], batch_first=True, padding_value=-100),
        "attention_mask": pad([torch.ones_like(example["input_ids"]) for example in examples], batch_first=True),
    }


def main():
    (script_args,) = HfArgumentParser(ScriptArguments).parse_args_into_dataclasses()
    config = LlamaConfig(
        vocab_size=8192,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        use_cache=False,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    peft_config = LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=script_args.lora_r,
        lora_alpha=32,
        lora_dropout=0.05,
        target_modules="all-linear",
    )
    model = get_peft_model(model, peft_config)
    model.print_trainable_parameters()
    if script_args.gradient_checkpointing:
        model.enable_input_require_grads()
    training_args = TrainingArguments(
        output_dir="sft",
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        gradient_checkpointing=script_args.gradient_checkpointing,
        learning_rate=2e-4,
        logging_steps=10,
        max_steps=1000,
        report_to="none",
        bf16=torch.cuda.is_available(),
    )
    trainer = Trainer(
        model=model, args=training_args, train_dataset=RandomChats(script_args.max_length), data_collator=collate
    )
    trainer.train()
    model.save_pretrained("sft")


if __name__ == "__main__":
    main()
