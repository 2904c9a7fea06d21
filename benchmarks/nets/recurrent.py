"""Recurrent networks."""

from typing import Literal

import torch
from torch import nn

Inputs = tuple[torch.Tensor, ...]
_CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class LanguageModel(nn.Module):
    """An embedding, recurrent layers, and scores for the next token."""

    def __init__(
        self,
        cell: Literal["rnn", "gru", "lstm"],
        layers: int,
        vocabulary: int = 8_000,
        width: int = 256,
        hidden: int = 384,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.recurrent = _CELLS[cell](width, hidden, layers, batch_first=True, dropout=0.1 if layers > 1 else 0.0)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of the next token after each."""
        features, _ = self.recurrent(self.embedding(tokens))
        return self.head(features)


def _tokens(batch: int, length: int, vocabulary: int = 8_000) -> Inputs:
    return (torch.randint(vocabulary, (batch, length)),)


def rnn() -> tuple[nn.Module, Inputs]:
    """Return a language model with one plain recurrent layer."""
    return LanguageModel("rnn", 1), _tokens(16, 64)


def gru() -> tuple[nn.Module, Inputs]:
    """Return a language model with two gated recurrent layers."""
    return LanguageModel("gru", 2), _tokens(16, 64)


def lstm() -> tuple[nn.Module, Inputs]:
    """Return a language model with one LSTM layer."""
    return LanguageModel("lstm", 1), _tokens(16, 64)


def lstm_two_layers() -> tuple[nn.Module, Inputs]:
    """Return a language model with two LSTM layers."""
    return LanguageModel("lstm", 2), _tokens(16, 64)


class Tagger(nn.Module):
    """A bidirectional LSTM over features, with a label for each step: all of its memory is the recurrent layer's."""

    def __init__(self, features: int = 80, hidden: int = 320, labels: int = 40) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(features, hidden, 2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, labels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the labels at each step."""
        return self.head(self.recurrent(x)[0])


def lstm_bidirectional() -> tuple[nn.Module, Inputs]:
    """Return a tagger with two bidirectional LSTM layers."""
    return Tagger(), (torch.randn(150, 16, 80),)


class Translator(nn.Module):
    """An encoder and a decoder of gated recurrent layers, with attention of the decoder over the encoder."""

    def __init__(self, vocabulary: int = 6_000, width: int = 256) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, width, bidirectional=True, batch_first=True)
        self.bridge = nn.Linear(2 * width, width)
        self.cell = nn.GRUCell(2 * width, width)
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.energy = nn.Linear(width, 1, bias=False)
        self.head = nn.Linear(2 * width, vocabulary)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the scores of each token of the target, given those before it."""
        encoded, _ = self.encoder(self.source(source))
        memory = self.bridge(encoded)
        keys, state = self.key(memory), memory[:, -1]
        context, outputs = memory.mean(1), []
        for token in self.target(target).unbind(1):
            state = self.cell(torch.cat((token, context), 1), state)
            energy = self.energy(torch.tanh(self.query(state).unsqueeze(1) + keys)).squeeze(2)
            context = torch.bmm(energy.softmax(1).unsqueeze(1), memory).squeeze(1)
            outputs.append(torch.cat((state, context), 1))
        return self.head(torch.stack(outputs, 1))


def seq2seq() -> tuple[nn.Module, Inputs]:
    """Return a translator for sentences of 32 tokens."""
    return Translator(), (torch.randint(6_000, (16, 32)), torch.randint(6_000, (16, 32)))
