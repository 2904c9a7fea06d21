"""Lines of real runs as people quoted them, each with where it stands."""

# https://github.com/pytorch/pytorch/issues/35901
SUMMARY_OF_2020 = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 1         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
|       from large pool |    1048 MB |    4865 MB |   89263 MB |   88215 MB |
|       from small pool |      14 MB |      14 MB |      35 MB |      21 MB |
|---------------------------------------------------------------------------|
| Active memory         |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |   12420 MB |   12420 MB |   16924 MB |    4504 MB |
"""

# https://github.com/pytorch/pytorch/pull/91854
SUMMARY_IN_BINARY_UNITS = """\
|                  PyTorch CUDA memory summary, device ID 1                 |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |   1024 KiB |   1024 KiB |   1024 KiB |      0 B   |
|       from large pool |      0 KiB |      0 KiB |      0 KiB |      0 B   |
"""

# https://github.com/meta-pytorch/torchrec/pull/3580
STATS_AS_PAIRS = (
    "[('active_bytes.all.allocated', 5861), ('active_bytes.all.current', 5861), ('active_bytes.all.peak', 5861), "
    "('allocated_bytes.all.current', 5861), ('allocated_bytes.all.peak', 5861), "
    "('allocated_bytes.large_pool.peak', 5859), ('requested_bytes.all.peak', 5860), ('reserved_bytes.all.peak', 5866)]"
)

# https://github.com/murong-xu/CADS/issues/4
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB "
    "of which 12.73 GiB is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the "
    "allocated memory 9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated."
)

# https://github.com/Synthintel0/MyGirlGPT/issues/11: the word was misspelt in versions 2.1 and 2.2.
OUT_OF_MEMORY_MISSPELT = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacty of 4.00 "
    "GiB of which 41.56 MiB is free. Including non-PyTorch memory, this process has 3.44 GiB memory in use. Of the "
    "allocated memory 2.58 GiB is allocated by PyTorch, and 1.90 MiB is reserved by PyTorch but unallocated."
)

# https://github.com/One-2-3-45/One-2-3-45/issues/25
OUT_OF_MEMORY_IN_BRACKETS = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.69 GiB (GPU 0; 14.56 GiB total capacity; "
    "649.97 MiB already allocated; 1.31 GiB free; 1.01 GiB reserved in total by PyTorch) If reserved memory is >> "
    "allocated memory try setting max_split_size_mb to avoid fragmentation."
)

# https://github.com/pytorch/pytorch/issues/16417
OUT_OF_MEMORY_OF_2019 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already "
    "allocated; 9.28 GiB free; 4.68 MiB cached)"
)

# https://github.com/vllm-project/vllm/pull/12569
VLLM_WITH_WRONG_UNIT = """\
INFO 01-30 03:18:12 gpu_model_runner.py:848] Loading model weights took 67.7229 GB
INFO 01-30 03:19:14 kv_cache_utils.py:395] # GPU blocks: 1381
INFO 01-30 03:19:14 kv_cache_utils.py:398] Maximum concurrency for 2048 tokens per request: 10.79x
"""

# https://github.com/vllm-project/vllm/pull/10511, with tensor parallelism of 2
VLLM_PROFILE_OF_2024 = """\
INFO 12-13 19:55:25 worker.py:243] Memory profiling results:
INFO 12-13 19:55:25 worker.py:243] duration     3.49 seconds
INFO 12-13 19:55:25 worker.py:243] total_gpu_memory     79.22GiB
INFO 12-13 19:55:25 worker.py:243] gpu_memory_utilization       0.90
INFO 12-13 19:55:25 worker.py:243] the current vLLM instance can use    71.29GiB
INFO 12-13 19:55:25 worker.py:243] model weights take   7.48GiB
INFO 12-13 19:55:25 worker.py:243] non_torch_memory     3.58GiB
INFO 12-13 19:55:25 worker.py:243] PyTorch activation peak memory       1.26GiB
"""

# https://github.com/vllm-project/vllm/pull/12126
VLLM_V0 = """\
INFO 01-16 09:40:00 worker.py:238] the current vLLM instance can use total_gpu_memory (79.22GiB) x \
gpu_memory_utilization (0.90) = 71.29GiB
INFO 01-16 09:40:00 worker.py:238] model weights take 19.86GiB; non_torch_memory takes 0.16GiB; PyTorch activation \
peak memory takes 36.63GiB; the rest of the memory reserved for KV Cache is 14.65GiB.
INFO 01-16 09:40:00 executor_base.py:95] # CUDA blocks: 6001, # CPU blocks: 1638
"""

# https://github.com/vllm-project/vllm/pull/17122, an L40S with meta-llama/Llama-3.1-8B-Instruct
VLLM_V1 = """\
INFO 04-24 16:32:59 [loader.py:458] Loading weights took 2.95 seconds
INFO 04-24 16:33:00 [gpu_model_runner.py:1316] Model loading took 14.9889 GiB and 3.652170 seconds
INFO 04-24 16:33:13 [kv_cache_utils.py:634] GPU KV cache size: 158,656 tokens
INFO 04-24 16:33:13 [kv_cache_utils.py:637] Maximum concurrency for 32,768 tokens per request: 4.84x
"""

# https://github.com/vllm-project/vllm/issues/21348
VLLM_POOL = """\
Available KV cache memory: 8.11 GiB
GPU KV cache size: 178,880 tokens
"""

# https://github.com/aivrar/vllm-windows-build/issues/4
VLLM_GRAPHS = """\
INFO 05-26 21:34:14 [gpu_model_runner.py:6243] Graph capturing finished in 2 secs, took 0.11 GiB
INFO 05-26 21:34:14 [gpu_worker.py:621] CUDA graph pool memory: 0.11 GiB (actual), 0.14 GiB (estimated), difference: \
0.03 GiB (25.0%).
"""

# https://github.com/wtdcode/vllm-backport/issues/34
VLLM_LATEST = (
    "(Worker_PP1_TP3 pid=4365) INFO 08-31 15:25:55 [gpu_worker.py:805] Free memory on device (22.93/23.56 GiB) on "
    "startup. Desired GPU memory utilization is (0.935, 22.03 GiB). Actual usage is 19.47 GiB for consumed memory "
    "(weights + non-torch), 0.6 GiB for peak activation, and 0.1 GiB for CUDAGraph memory. Replace "
    "gpu_memory_utilization config with `--kv-cache-memory=1828800984` (1.7 GiB) to fit into requested memory. "
    "Current kv cache memory in use is 1.95 GiB.\n"
)

# https://github.com/vllm-project/vllm-ascend/pull/8289
VLLM_ASCEND = (
    "(EngineCore pid=2884597) INFO 04-15 06:30:01 [worker.py:575] Free memory on device (60.86/61.27 GiB) on startup. "
    "Desired GPU memory utilization is (0.9, 55.14 GiB). Actual usage: 1.14 GiB for weights, 0.22 GiB for peak "
    "activation, 0.13 GiB for non-torch memory, 0.04 GiB for NPU graph memory."
)

# https://github.com/vllm-project/vllm/pull/14447
VLLM_WORKERS = """\
(VllmWorkerProcess pid=521) INFO 04-12 08:21:19 [worker.py:267] model weights take 21.21GiB; non_torch_memory takes \
0.20GiB; PyTorch activation peak memory takes 0.37GiB; the rest of the memory reserved for KV Cache is 1.57GiB.
(VllmWorkerProcess pid=507) INFO 04-12 08:21:19 [worker.py:267] model weights take 21.21GiB; non_torch_memory takes \
0.20GiB; PyTorch activation peak memory takes 0.37GiB; the rest of the memory reserved for KV Cache is 1.57GiB.
"""

# https://github.com/ggml-org/llama.cpp/pull/6122, the end as in the other lines of the thread
LLAMA_CPP_TWO_CARDS = """\
  Device 0: NVIDIA GeForce RTX 4070 Ti, compute capability 8.9, VMM: yes
  Device 1: NVIDIA GeForce RTX 3090 Ti, compute capability 8.6, VMM: yes
llm_load_tensors: offloaded 41/41 layers to GPU
llm_load_tensors:        CPU buffer size =  1640.62 MiB
llm_load_tensors:      CUDA0 buffer size =  5434.38 MiB
llm_load_tensors:      CUDA1 buffer size = 13989.53 MiB
llama_new_context_with_model: n_ctx      = 4096
llama_kv_cache_init:      CUDA0 KV buffer size =  1536.00 MiB
llama_kv_cache_init:      CUDA1 KV buffer size =  3584.00 MiB
llama_new_context_with_model: KV self size  = 5120.00 MiB, K (f16): 2560.00 MiB, V (f16): 2560.00 MiB
llama_new_context_with_model:  CUDA_Host  output buffer size =     1.95 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   672.01 MiB
"""

# https://github.com/ggml-org/llama.cpp/issues/12196
LLAMA_CPP_MAPPED = """\
load_tensors: offloaded 49/49 layers to GPU
load_tensors:        CUDA0 model buffer size =  8148.38 MiB
load_tensors:   CPU_Mapped model buffer size =   417.66 MiB
llama_init_from_model: n_ctx         = 4096
"""

# https://github.com/ggml-org/llama.cpp/issues/14075
LLAMA_CPP_ROWS = """\
load_tensors:  CUDA0_Split model buffer size = 14056.88 MiB
load_tensors:        CUDA0 model buffer size =     1.31 MiB
"""

# https://github.com/SciSharp/LLamaSharp/issues/1099
LLAMA_CPP_BUILD = """\
build: 4701 (be3bbd62) with MSVC 19.41.34120.0 for x64
[llama Info]: llama_kv_cache_init:      CUDA0 KV buffer size =   144.00 MiB
[llama Info]: llama_init_from_model:      CUDA0 compute buffer size =   300.75 MiB
"""

# https://github.com/ollama/ollama/pull/16031: a projection, before anything was loaded
LLAMA_CPP_PROJECTED = """\
common_memory_breakdown_print: | memory breakdown [MiB] | total    free     self   model   context   compute    \
unaccounted |
common_memory_breakdown_print: |   - CUDA1 (RTX 3090)   | 24575 = 23332 + (17829 =  1177 +   15360 +    1292) +      \
-16586 |
"""

# The end of a run of Qwen3-Coder-Next UD-IQ3_XXS at -c 4096 on an RTX 5090
LLAMA_CPP_BREAKDOWN = """\
llama_memory_breakdown_print: | memory breakdown [MiB] | total   free     self   model   context   compute    \
unaccounted |
llama_memory_breakdown_print: |   - CUDA0 (RTX 5090)   | 32606 = 1057 + (29365 = 28609 +     397 +     358) +        \
2183 |
llama_memory_breakdown_print: |   - Host               |                 30956 = 30940 +       0 +      16           \
     |
"""

# https://github.com/vllm-project/vllm/issues/7553
SMI_TABLE = """\
|   0  NVIDIA GeForce RTX 4090        Off | 00000000:4F:00.0 Off |                  Off |
| 31%   28C    P8              21W / 450W |    393MiB / 24564MiB |      0%      Default |
|                                         |                      |                  N/A |
"""

# https://github.com/noonghunna/club-3090/issues/390 has the table; processes as nvidia-smi prints them below it
SMI_PROCESSES = """\
|   0  NVIDIA GeForce RTX 3090        Off |   00000000:07:00.0  On |                  N/A |
| 79%   66C    P2            144W /  420W |   15005MiB /  24576MiB |      0%      Default |
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|    0   N/A  N/A            1714      G   /usr/lib/xorg/Xorg                      183MiB |
|    0   N/A  N/A          884422      C   ./llama-server                        14762MiB |
"""

# nvidia-smi --query-gpu and --query-compute-apps on an L40S, two broken lines added
SMI_LISTS = """\
index, name, memory.total [MiB], memory.used [MiB], memory.free [MiB]
0, NVIDIA L40S, 46068 MiB, 9123 MiB, 36346 MiB

pid, process_name, used_gpu_memory [MiB]
44378, tritonserver, 1836 MiB
52114, /usr/bin/python3, 6294 MiB
broken line
52115, /usr/bin/python3, [N/A]
"""

# https://github.com/huggingface/transformers/pull/13915
TRAINER_METRICS = """\
  before_init_mem_gpu        =      312MB
  train_mem_gpu_alloc_delta  =     -153MB
  train_mem_gpu_peaked_delta =     2012MB
"""

# The end of torchtune's first steps, as in its own documentation
TORCHTUNE = """\
    Memory stats after model init:
            GPU peak memory allocation: 6.21 GiB
            GPU peak memory reserved: 6.27 GiB
            GPU peak memory active: 6.21 GiB
"""

# https://github.com/meta-pytorch/torchtune/pull/2406
TORCHTUNE_STEPS = """\
Step 1 | loss:2.45 lr:2e-05 peak_memory_active:47.32469987869263 peak_memory_alloc:52.001708984375
Step 2 | loss:1.46 lr:2e-05 peak_memory_active:47.32469987869263 peak_memory_alloc:53.99104309082031
"""
