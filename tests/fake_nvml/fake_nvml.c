/* A stand-in for NVIDIA's management library: the functions that nvidia-ml-py calls, with NVML's own ABI.
 *
 * What it answers is in the file that FAKE_NVML_SCRIPT names, read anew whenever it changes. A line is a key and its
 * values; the n-th question takes the n-th value and the last one stays ("3x50" is 50 three times). A card's keys
 * begin with its number, an instance's with "card:instance". What has no key is "not supported".
 *
 *   count 2                              cards
 *   error.FUNCTION 9                     what a function of the library returns
 *   0.error.FUNCTION 0 0 15              what it returns for card 0; FUNCTION may be *
 *   0.stall.FUNCTION 1                   it hangs until the script is written anew, and then fails
 *   0.hang.FUNCTION 1, 0.crash.FUNCTION 1, 0.slow.FUNCTION 20 (milliseconds)
 *   0.uuid GPU-…, 0.name A name\xf8      texts, with bytes in hexadecimal
 *   0.process.compute pid:bytes:instance …
 *   0.field.82 45, 0.gpm.2 81.5          field values and GPM metrics by their numbers
 *   0.link.3.164 25781                   a field value of one NVLink (3)
 *   0.gi.2 19:4:4                        profile and placement (start, size) of GPU instance 2
 *   0.field_error.82 15                  what one field value returns
 *   0.field_type.82 9                    the type in which it is told, 64 bits unsigned (3) if not said
 *   event 0 8 79                         one event: card, type, data; each line is told once
 *
 * FAKE_NVML_LOG, when set, names a file that gets a line for each call: the function and the card.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999
};
enum { LINES = 4096, TEXT = 512, PROCESSES = 64 };

typedef struct { char key[96]; char text[TEXT]; long asked; } Line;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int Return;
typedef void *Device;

static Line lines[LINES];
static int line_count, slots[2 * LINES];
static struct timespec read_at;
static off_t read_size = -1;
static ino_t read_inode;
static int open_count, generation, events_told;
static atomic_int inside;

/* The script. */

static void unescape(char *text) {
    char *to = text;
    for (char *from = text; *from; from++)
        if (from[0] == '\\' && from[1] == 'x' && isxdigit(from[2]) && isxdigit(from[3])) {
            char digits[3] = {from[2], from[3], 0};
            *to++ = (char)strtol(digits, NULL, 16);
            from += 3;
        } else
            *to++ = *from;
    *to = 0;
}

/* Where a key is, or where it would be: the number of its line, from 1 on. */
static int *slot_of(const char *key) {
    unsigned hash = 5381;
    for (const char *at = key; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    for (;; hash++) {
        int *slot = &slots[hash % (2 * LINES)];
        if (!*slot || !strcmp(lines[*slot - 1].key, key))
            return slot;
    }
}

static void read_script(void) {
    const char *path = getenv("FAKE_NVML_SCRIPT");
    struct stat about;
    if (!path || stat(path, &about))
        return;
    if (about.st_ino == read_inode && about.st_size == read_size && about.st_mtim.tv_sec == read_at.tv_sec &&
        about.st_mtim.tv_nsec == read_at.tv_nsec)
        return;
    read_at = about.st_mtim, read_size = about.st_size, read_inode = about.st_ino;
    FILE *file = fopen(path, "r");
    char line[TEXT + 96];
    line_count = 0, events_told = 0;
    memset(slots, 0, sizeof slots);
    while (file && fgets(line, sizeof line, file) && line_count < LINES) {
        line[strcspn(line, "\r\n")] = 0;
        char *space = strchr(line, ' ');
        if (!space || line[0] == '#')
            continue;
        *space = 0;
        Line *made = &lines[line_count++];
        snprintf(made->key, sizeof made->key, "%.95s", line);
        snprintf(made->text, sizeof made->text, "%.511s", space + 1);
        unescape(made->text);
        made->asked = 0;
        int *slot = slot_of(made->key);
        // The first line of a key counts, as with events.
        if (!*slot)
            *slot = line_count;
    }
    if (file)
        fclose(file);
}

static Line *find(const char *format, ...) {
    char key[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(key, sizeof key, format, arguments);
    va_end(arguments);
    int *slot = slot_of(key);
    return *slot ? &lines[*slot - 1] : NULL;
}

/* The value whose turn it is, and 0 where the line has none. */
static int turn(Line *line, double *value) {
    if (!line)
        return 0;
    long left = line->asked++;
    char *word = line->text, *end;
    int any = 0;
    while (*word) {
        double number = strtod(word, &end);
        if (end == word)
            break;
        long times = 1;
        if (*end == 'x') {
            times = (long)number;
            number = strtod(end + 1, &end);
        }
        *value = number, any = 1;
        if (left < times)
            return 1;
        left -= times;
        for (word = end; *word == ' '; word++)
            ;
    }
    return any;
}

/* Devices: a handle holds its generation, its card and its instance. */

typedef struct { int card, instance, generation; char name[24]; } Who;

static Device handle_of(int card, int instance) {
    return (Device)(((uintptr_t)generation << 16) | ((uintptr_t)(card + 1) << 8) | (uintptr_t)(instance + 1));
}

static Who who(Device device) {
    uintptr_t bits = (uintptr_t)device;
    Who found = {(int)((bits >> 8) & 255) - 1, (int)(bits & 255) - 1, (int)(bits >> 16), ""};
    if (found.instance >= 0)
        snprintf(found.name, sizeof found.name, "%d:%d", found.card, found.instance);
    else if (found.card >= 0)
        snprintf(found.name, sizeof found.name, "%d", found.card);
    return found;
}

static void log_call(const char *function, const char *name) {
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s%s %s\n", atomic_load(&inside) > 1 ? "OVERLAP " : "", function, name);
    fclose(file);
}

static double scripted(const char *name, const char *kind, const char *function) {
    double value = 0;
    const char *dot = *name ? "." : "";
    if (turn(find("%s%s%s.%s", name, dot, kind, function), &value) && value)
        return value;
    value = 0;
    return *name && turn(find("%s%s%s.*", name, dot, kind), &value) ? value : 0;
}

/* Wait until the script is written anew; nothing of it is touched, for other threads read it meanwhile. */
static void wait_for_another_script(void) {
    struct stat about;
    ino_t before = read_inode;
    while (stat(getenv("FAKE_NVML_SCRIPT"), &about) || about.st_ino == before)
        usleep(1000);
}

/* What every function does first: returns what the script says of it, or hangs, or crashes. */
static Return enter(const char *function, const char *name) {
    atomic_fetch_add(&inside, 1);
    read_script();
    log_call(function, name);
    while (scripted(name, "hang", function))
        for (;;)
            usleep(1000);
    if (scripted(name, "stall", function)) {
        wait_for_another_script();
        atomic_fetch_sub(&inside, 1);
        return UNKNOWN;
    }
    double milliseconds = scripted(name, "slow", function);
    if (milliseconds)
        usleep((useconds_t)(milliseconds * 1000));
    if (scripted(name, "crash", function))
        raise(SIGSEGV);
    Return code = (Return)scripted(name, "error", function);
    atomic_fetch_sub(&inside, 1);
    return code;
}

static Return enter_device(const char *function, Device device, Who *found) {
    *found = who(device);
    Return code = enter(function, found->name);
    if (code)
        return code;
    if (!open_count)
        return UNINITIALIZED;
    return found->generation == generation ? SUCCESS : INVALID_ARGUMENT;
}

static Return number(Who *found, const char *field, double *value) {
    return turn(find("%s.%s", found->name, field), value) ? SUCCESS : NOT_SUPPORTED;
}

static Return text(Who *found, const char *field, char *into, size_t size) {
    Line *line = find("%s.%s", found->name, field);
    if (!line)
        return NOT_SUPPORTED;
    snprintf(into, size, "%s", line->text);
    return SUCCESS;
}

/* A structure that tells its version must be one that this library knows. */
#define EXPECT_VERSION(POINTER, NUMBER)                                       \
    if ((POINTER)->version != ((u32)sizeof *(POINTER) | (u32)(NUMBER) << 24)) \
    return ARGUMENT_VERSION_MISMATCH

#define BEGIN                                             \
    Who found;                                            \
    Return code = enter_device(__func__, device, &found); \
    if (code)                                             \
    return code

#define GETTER(NAME, TYPE, FIELD)                 \
    Return NAME(Device device, TYPE *into) {      \
        BEGIN;                                    \
        double value;                             \
        code = number(&found, FIELD, &value);     \
        if (!code)                                \
            *into = (TYPE)value;                  \
        return code;                              \
    }

#define PAIR(NAME, FIRST, SECOND)                                                                     \
    Return NAME(Device device, u32 *first, u32 *second) {                                             \
        BEGIN;                                                                                        \
        double one, two;                                                                              \
        code = number(&found, FIRST, &one);                                                           \
        if (!code) {                                                                                  \
            *first = (u32)one;                                                                        \
            *second = number(&found, SECOND, &two) ? 0 : (u32)two;                                    \
        }                                                                                             \
        return code;                                                                                  \
    }

/* The library. */

Return nvmlInitWithFlags(u32 flags) {
    (void)flags;
    Return code = enter(__func__, "");
    if (!code && !open_count++)
        generation++;
    return code;
}

Return nvmlShutdown(void) {
    Return code = enter(__func__, "");
    if (!code && open_count)
        open_count--;
    return code;
}

const char *nvmlErrorString(Return code) {
    static char words[40];
    snprintf(words, sizeof words, "fake error %d", code);
    return words;
}

static Return system_text(const char *function, const char *key, const char *otherwise, char *into, u32 size) {
    Return code = enter(function, "");
    Line *line = find("%s", key);
    if (!code)
        snprintf(into, size, "%s", line ? line->text : otherwise);
    return code;
}

Return nvmlSystemGetDriverVersion(char *into, u32 size) {
    return system_text(__func__, "driver", "580.65.06", into, size);
}

Return nvmlSystemGetNVMLVersion(char *into, u32 size) {
    return system_text(__func__, "nvml", "13.580.65.06", into, size);
}

Return nvmlSystemGetCudaDriverVersion_v2(int *into) {
    Return code = enter(__func__, "");
    *into = 13000;
    return code;
}

Return nvmlDeviceGetCount_v2(u32 *into) {
    Return code = enter(__func__, "");
    double value = 0;
    turn(find("count"), &value);
    *into = (u32)value;
    return code ? code : open_count ? SUCCESS : UNINITIALIZED;
}

Return nvmlDeviceGetHandleByIndex_v2(u32 index, Device *into) {
    char name[24];
    snprintf(name, sizeof name, "%u", index);
    Return code = enter(__func__, name);
    *into = handle_of((int)index, -1);
    return code ? code : open_count ? SUCCESS : UNINITIALIZED;
}

/* Ours asks by number and never for it; other monitors do. */
Return nvmlDeviceGetIndex(Device device, u32 *into) {
    BEGIN;
    *into = (u32)found.card;
    return SUCCESS;
}

/* A device's texts. */

Return nvmlDeviceGetName(Device device, char *into, u32 size) {
    BEGIN;
    return text(&found, "name", into, size);
}

Return nvmlDeviceGetUUID(Device device, char *into, u32 size) {
    BEGIN;
    return text(&found, "uuid", into, size);
}

typedef struct { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; } Pci;

Return nvmlDeviceGetPciInfo_v3(Device device, Pci *into) {
    BEGIN;
    memset(into, 0, sizeof *into);
    return text(&found, "pci", into->bus_id, sizeof into->bus_id);
}

/* Numbers. */

GETTER(nvmlDeviceGetPowerUsage, u32, "power")
GETTER(nvmlDeviceGetTotalEnergyConsumption, u64, "energy")
GETTER(nvmlDeviceGetEnforcedPowerLimit, u32, "power_limit")
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, u32, "power_default")
GETTER(nvmlDeviceGetFanSpeed, u32, "fan")
GETTER(nvmlDeviceGetPerformanceState, u32, "pstate")
GETTER(nvmlDeviceGetCurrentClocksEventReasons, u64, "reasons")
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "reasons")
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, u32, "pcie_generation")
GETTER(nvmlDeviceGetCurrPcieLinkWidth, u32, "pcie_width")
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, u32, "pcie_max_generation")
GETTER(nvmlDeviceGetMaxPcieLinkWidth, u32, "pcie_max_width")
GETTER(nvmlDeviceGetPersistenceMode, u32, "persistence")
GETTER(nvmlDeviceGetComputeMode, u32, "compute_mode")
GETTER(nvmlDeviceGetPowerSource, u32, "power_source")
GETTER(nvmlDeviceGetArchitecture, u32, "architecture")
GETTER(nvmlDeviceGetMaxMigDeviceCount, u32, "mig_devices")
GETTER(nvmlDeviceGetGpuInstanceId, u32, "gpu_instance")
GETTER(nvmlDeviceGetComputeInstanceId, u32, "compute_instance")
GETTER(nvmlDeviceGetSupportedEventTypes, u64, "event_types")
PAIR(nvmlDeviceGetEncoderUtilization, "encoder", "period")
PAIR(nvmlDeviceGetDecoderUtilization, "decoder", "period")
PAIR(nvmlDeviceGetJpgUtilization, "jpeg", "period")
PAIR(nvmlDeviceGetOfaUtilization, "ofa", "period")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power_min", "power_max")
PAIR(nvmlDeviceGetMigMode, "mig", "mig")
PAIR(nvmlDeviceGetEccMode, "ecc", "ecc")
PAIR(nvmlDeviceGetDriverModel_v2, "driver_model", "driver_model")
PAIR(nvmlDeviceGetCudaComputeCapability, "cc_major", "cc_minor")

Return nvmlDeviceGetUtilizationRates(Device device, u32 *into) {
    BEGIN;
    double gpu, memory;
    code = number(&found, "utilization", &gpu);
    if (!code)
        into[0] = (u32)gpu, into[1] = number(&found, "memory_utilization", &memory) ? 0 : (u32)memory;
    return code;
}

typedef struct { u64 total, free, used; } Bar1;

Return nvmlDeviceGetBAR1MemoryInfo(Device device, Bar1 *into) {
    BEGIN;
    double total, used;
    if (number(&found, "bar1.total", &total) || number(&found, "bar1.used", &used))
        return NOT_SUPPORTED;
    *into = (Bar1){(u64)total, (u64)(total - used), (u64)used};
    return SUCCESS;
}

typedef struct { u32 version; unsigned char cluster[16]; Return status; u32 clique, state, health; } Fabric;

Return nvmlDeviceGetGpuFabricInfoV(Device device, Fabric *into) {
    BEGIN;
    EXPECT_VERSION(into, 2);
    double state = 0;
    code = number(&found, "fabric", &state);
    into->state = (u32)state;
    return code;
}

static Return indexed(Device device, const char *function, const char *field, u32 which, u32 *into) {
    Who found;
    Return code = enter_device(function, device, &found);
    char key[64];
    double value;
    snprintf(key, sizeof key, "%s.%u", field, which);
    if (!code && !(code = number(&found, key, &value)))
        *into = (u32)value;
    return code;
}

Return nvmlDeviceGetClockInfo(Device device, u32 kind, u32 *into) {
    return indexed(device, __func__, "clock", kind, into);
}

Return nvmlDeviceGetMaxClockInfo(Device device, u32 kind, u32 *into) {
    return indexed(device, __func__, "max_clock", kind, into);
}

Return nvmlDeviceGetTemperature(Device device, u32 sensor, u32 *into) {
    return indexed(device, __func__, "temperature", sensor, into);
}

Return nvmlDeviceGetTemperatureThreshold(Device device, u32 which, u32 *into) {
    return indexed(device, __func__, "threshold", which, into);
}

Return nvmlDeviceGetPcieThroughput(Device device, u32 direction, u32 *into) {
    return indexed(device, __func__, "pcie", direction, into);
}

typedef struct { u32 version, sensor; int temperature; } Temperature;

Return nvmlDeviceGetTemperatureV(Device device, Temperature *into) {
    EXPECT_VERSION(into, 1);
    return indexed(device, __func__, "temperature", into->sensor, (u32 *)&into->temperature);
}

typedef struct { u32 version; int margin; } Margin;

Return nvmlDeviceGetMarginTemperature(Device device, Margin *into) {
    BEGIN;
    EXPECT_VERSION(into, 1);
    double value;
    code = number(&found, "margin", &value);
    if (!code)
        into->margin = (int)value;
    return code;
}

typedef struct { u64 total, free, used; } Memory;
typedef struct { u32 version; u64 total, reserved, free, used; } MemoryV2;

static Return memory(Who *found, double *total, double *reserved, double *used) {
    Return code = number(found, "memory.total", total);
    *reserved = *used = 0;
    number(found, "memory.reserved", reserved);
    number(found, "memory.used", used);
    return code;
}

Return nvmlDeviceGetMemoryInfo(Device device, Memory *into) {
    BEGIN;
    double total, reserved, used;
    code = memory(&found, &total, &reserved, &used);
    if (!code)
        *into = (Memory){(u64)total, (u64)(total - reserved - used), (u64)(reserved + used)};
    return code;
}

Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2 *into) {
    BEGIN;
    EXPECT_VERSION(into, 2);
    double total, reserved, used;
    code = memory(&found, &total, &reserved, &used);
    if (!code)
        *into = (MemoryV2){into->version, (u64)total, (u64)reserved, (u64)(total - reserved - used), (u64)used};
    return code;
}

Return nvmlDeviceGetTotalEccErrors(Device device, u32 kind, u32 counter, u64 *into) {
    u32 value;
    (void)counter;
    Return code = indexed(device, __func__, "ecc_errors", kind, &value);
    if (!code)
        *into = value;
    return code;
}

/* Field values: 64 bits each, as unsigned long long. */

typedef struct { u32 id, scope; int64_t timestamp, latency; u32 type; Return code; union { double real; u64 whole; } value; } Field;

Return nvmlDeviceGetFieldValues(Device device, int count, Field *fields) {
    BEGIN;
    for (int at = 0; at < count; at++) {
        char key[64];
        double value, type;
        // Counters of NVLink are told for all links together only where that is asked for.
        int is_link = fields[at].id == 138 || fields[at].id == 139;
        if (fields[at].id >= 161 && fields[at].id <= 166)
            snprintf(key, sizeof key, "link.%u.%u", fields[at].scope, fields[at].id);
        else
            snprintf(key, sizeof key, is_link && fields[at].scope != 0xFFFFFFFF ? "one_link" : "field.%u", fields[at].id);
        fields[at].code = number(&found, key, &value);
        if (turn(find("%s.field_error.%u", found.name, fields[at].id), &value))
            fields[at].code = (Return)value;
        fields[at].type = turn(find("%s.field_type.%u", found.name, fields[at].id), &type) ? (u32)type : 3;
        fields[at].latency = 5, fields[at].timestamp = (int64_t)time(NULL) * 1000000;
        fields[at].value.whole = fields[at].code ? 0 : (u64)value;
    }
    return SUCCESS;
}

/* Processes: "pid:bytes:instance". The first layout lacks the instance; the driver R535 swapped fields. */

typedef struct { u32 pid; u64 bytes; u32 gpu_instance, compute_instance; } Process;
typedef struct { u32 pid; u64 bytes; } ProcessV1;

static Return processes(const char *function, const char *kind, Device device, u32 *count, void *into, int first) {
    Who found;
    Return code = enter_device(function, device, &found);
    if (code)
        return code;
    Line *line = find("%s.process.%s", found.name, kind);
    Process all[PROCESSES];
    u32 number = 0;
    char copy[TEXT], *rest, *word;
    snprintf(copy, sizeof copy, "%s", line ? line->text : "");
    for (word = strtok_r(copy, " ", &rest); word && number < PROCESSES; word = strtok_r(NULL, " ", &rest), number++) {
        all[number] = (Process){0, 0, 0xFFFFFFFF, 0xFFFFFFFF};
        char *bytes = strchr(word, ':'), *instance = bytes ? strchr(bytes + 1, ':') : NULL;
        all[number].pid = (u32)strtoul(word, NULL, 10);
        all[number].bytes = bytes ? (bytes[1] == '-' ? ~0ull : strtoull(bytes + 1, NULL, 10)) : 0;
        if (instance)
            all[number].gpu_instance = (u32)strtoul(instance + 1, NULL, 10);
    }
    u32 room = *count;
    *count = number;
    if (number > room || (number && !into))
        return INSUFFICIENT_SIZE;
    for (u32 at = 0; at < number; at++)
        if (first)
            ((ProcessV1 *)into)[at] = (ProcessV1){all[at].pid, all[at].bytes};
        else
            ((Process *)into)[at] = all[at];
    return SUCCESS;
}

#define PROCESSES_OF(KIND, WORD)                                                                             \
    Return nvmlDeviceGet##KIND##RunningProcesses(Device device, u32 *count, void *into) {                    \
        return processes(__func__, WORD, device, count, into, 1);                                            \
    }                                                                                                        \
    Return nvmlDeviceGet##KIND##RunningProcesses_v2(Device device, u32 *count, void *into) {                 \
        return processes(__func__, WORD, device, count, into, 0);                                            \
    }                                                                                                        \
    Return nvmlDeviceGet##KIND##RunningProcesses_v3(Device device, u32 *count, void *into) {                 \
        return processes(__func__, WORD, device, count, into, 0);                                            \
    }

PROCESSES_OF(Compute, "compute")
PROCESSES_OF(Graphics, "graphics")
PROCESSES_OF(MPSCompute, "mps")

typedef struct { u32 pid; u64 timestamp; u32 sm, memory, encoder, decoder; } Usage;

/* "pid:timestamp:sm:memory:encoder:decoder" each, without what is 0 at the end; only those after `since`. */
Return nvmlDeviceGetProcessUtilization(Device device, Usage *into, u32 *count, u64 since) {
    BEGIN;
    Line *line = find("%s.usage", found.name);
    if (!line)
        return NOT_SUPPORTED;
    u32 number = 0, room = *count;
    char copy[TEXT], *rest, *word;
    snprintf(copy, sizeof copy, "%s", line->text);
    for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        Usage one = {0};
        unsigned long long at = 0;
        sscanf(word, "%u:%llu:%u:%u:%u:%u", &one.pid, &at, &one.sm, &one.memory, &one.encoder, &one.decoder);
        one.timestamp = at;
        if (at > since && number++ < room && into)
            into[number - 1] = one;
    }
    *count = number;
    return !number ? NOT_FOUND : number > room || !into ? INSUFFICIENT_SIZE : SUCCESS;
}

/* Events. */

typedef struct { Device device; u64 type, data; u32 gpu_instance, compute_instance; } Event;

Return nvmlEventSetCreate(void **into) {
    *into = (void *)1;
    return enter(__func__, "");
}

Return nvmlEventSetFree(void *set) {
    (void)set;
    return enter(__func__, "");
}

Return nvmlDeviceRegisterEvents(Device device, u64 types, void *set) {
    BEGIN;
    (void)types, (void)set;
    return SUCCESS;
}

Return nvmlEventSetWait_v2(void *set, Event *into, u32 milliseconds) {
    Return code = enter(__func__, "");
    (void)set, (void)milliseconds;
    if (code)
        return code;
    int seen = 0;
    for (int at = 0; at < line_count; at++) {
        unsigned long long type, data;
        int card;
        if (strcmp(lines[at].key, "event") || seen++ < events_told)
            continue;
        events_told++;
        sscanf(lines[at].text, "%d %llu %llu", &card, &type, &data);
        *into = (Event){handle_of(card, -1), type, data, 0xFFFFFFFF, 0xFFFFFFFF};
        return SUCCESS;
    }
    return TIMEOUT;
}

/* Instances. */

typedef struct { u32 units, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices; u64 megabytes; } Attributes;

Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, u32 index, Device *into) {
    BEGIN;
    if (!find("%d:%u.uuid", found.card, index))
        return NOT_FOUND;
    *into = handle_of(found.card, (int)index);
    return SUCCESS;
}

Return nvmlDeviceGetAttributes_v2(Device device, Attributes *into) {
    BEGIN;
    double units;
    memset(into, 0, sizeof *into);
    code = number(&found, "units", &units);
    into->units = (u32)units;
    double slices = 0, parts = 0, megabytes = 0;
    number(&found, "gpu_slices", &slices), number(&found, "compute_slices", &parts);
    number(&found, "megabytes", &megabytes);
    into->gpu_slices = (u32)slices, into->compute_slices = (u32)parts, into->megabytes = (u64)megabytes;
    return code;
}

typedef struct { Device device; u32 id, profile, start, size; } Instance;

Return nvmlDeviceGetGpuInstanceById(Device device, u32 id, void **into) {
    BEGIN;
    *into = handle_of(found.card, (int)id);
    return find("%d.gi.%u", found.card, id) ? SUCCESS : NOT_SUPPORTED;
}

Return nvmlGpuInstanceGetInfo(Device device, Instance *into) {
    BEGIN;
    Line *line = find("%d.gi.%d", found.card, found.instance);
    *into = (Instance){device, (u32)found.instance, 0, 0, 0};
    sscanf(line ? line->text : "", "%u:%u:%u", &into->profile, &into->start, &into->size);
    return SUCCESS;
}

/* GPM: a metric's value is a key "gpm.ID". */

typedef struct { u32 id; Return code; double value; const char *short_name, *long_name, *unit; } GpmMetric;
typedef struct { u32 version, count; void *first, *second; GpmMetric metrics[]; } GpmMetrics;
typedef struct { u32 version, supported; } GpmSupport;
enum { GPM_VERSION = 1 };

Return nvmlGpmQueryDeviceSupport(Device device, GpmSupport *into) {
    BEGIN;
    if (into->version != GPM_VERSION)
        return ARGUMENT_VERSION_MISMATCH;
    double value;
    into->supported = !number(&found, "gpm", &value) && value;
    return SUCCESS;
}

Return nvmlGpmSampleAlloc(void **into) {
    *into = malloc(sizeof(Device));
    return enter(__func__, "");
}

Return nvmlGpmSampleFree(void *sample) {
    free(sample);
    return enter(__func__, "");
}

Return nvmlGpmSampleGet(Device device, void *sample) {
    BEGIN;
    *(Device *)sample = device;
    return SUCCESS;
}

Return nvmlGpmMigSampleGet(Device device, u32 instance, void *sample) {
    BEGIN;
    *(Device *)sample = handle_of(found.card, (int)instance);
    return SUCCESS;
}

Return nvmlGpmMetricsGet(GpmMetrics *into) {
    Who found = who(*(Device *)into->second);
    Return code = enter(__func__, found.name);
    if (into->version != GPM_VERSION)
        return ARGUMENT_VERSION_MISMATCH;
    for (u32 at = 0; !code && at < into->count; at++) {
        char key[32];
        snprintf(key, sizeof key, "gpm.%u", into->metrics[at].id);
        into->metrics[at].code = number(&found, key, &into->metrics[at].value);
    }
    return code;
}
