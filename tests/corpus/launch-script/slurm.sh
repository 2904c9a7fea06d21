#!/bin/bash
#SBATCH --job-name=plan
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:2
#SBATCH --mem=0
set -euo pipefail
# 1 × 2 L40S; one launcher on each node starts its processes
# Needs vllm==0.33.0
arguments=(
  --dtype bfloat16  # compute precision; weights as stored
  --max-model-len 4096  # context: prompt and output tokens together
  --max-num-seqs 8  # sequences in one step
  --max-num-batched-tokens 2048  # tokens in one step
  --gpu-memory-utilization 0.47  # share of each GPU's memory: weights, activations and 4.50 GiB of KV cache for 8 × 4,096 tokens
  --block-size 16  # tokens in each block of the KV cache
  --tensor-parallel-size 1  # tensor parallelism
  --pipeline-parallel-size 1  # pipeline parallelism
  --data-parallel-size 2  # replicas
  --kv-cache-dtype auto  # KV-cache precision: that of the computation
)
srun vllm serve Qwen/Qwen3-8B "${arguments[@]}"
# Not expressed: count = 2: the number of GPUs follows from how they share the model
# Not expressed: gpu = L40S: each cluster names its GPUs itself (`sinfo -o %G`): write its name, as in --gres=gpu:h100:8
