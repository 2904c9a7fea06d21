"""An autoencoder with Lightning, in the style of its introduction; the images are random instead of downloaded."""

import lightning as L
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class FakeMNIST(Dataset):
    """Stands for torchvision's MNIST with ToTensor()."""

    def __getitem__(self, index):
        return torch.rand(1, 28, 28), index % 10

    def __len__(self):
        return 60_000


class LitAutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(28 * 28, 1024), nn.ReLU(), nn.Linear(1024, 64))
        self.decoder = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 28 * 28))

    def training_step(self, batch, batch_idx):
        x, _ = batch
        x = x.view(x.size(0), -1)
        z = self.encoder(x)
        x_hat = self.decoder(z)
        loss = nn.functional.mse_loss(x_hat, x)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    train_loader = DataLoader(FakeMNIST(), batch_size=512)
    trainer = L.Trainer(limit_train_batches=100, max_epochs=1)
    trainer.fit(model=LitAutoEncoder(), train_dataloaders=train_loader)
