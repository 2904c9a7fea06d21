#!/usr/bin/env bash
set -euo pipefail
# Needs vllm==0.33.0
arguments=(
  --dtype bfloat16  # compute precision; weights as stored
  --max-model-len 4096  # context: prompt and output tokens together
  --max-num-seqs 1  # sequences in one step
  --max-num-batched-tokens 2048  # tokens in one step
  --gpu-memory-utilization 0.43  # share of each GPU's memory: weights, activations and 0.62 GiB of KV cache for 1 × 4,096 tokens
  --block-size 16  # tokens in each block of the KV cache
  --tensor-parallel-size 1  # tensor parallelism
  --pipeline-parallel-size 1  # pipeline parallelism
  --data-parallel-size 1  # replicas
  --kv-cache-dtype auto  # KV-cache precision: that of the computation
  --speculative-config '{"method": "draft_model", "model": "meta-llama/Llama-3.2-1B", "num_speculative_tokens": 3}'  # how tokens are drafted
)
vllm serve meta-llama/Llama-3.1-8B "${arguments[@]}"
# Not expressed: gpu = L40S: the script runs on the GPUs of its machine
