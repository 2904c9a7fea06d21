/* Stand-ins for AMD's libamd_smi and Intel's libze_loader: the functions that are called of them, with their ABI.
 *
 * What they answer is in the file that FAKE_VENDORS_SCRIPT names, read anew at each call: lines of a key and a number.
 *
 *   amd 1, intel 1            cards; each at the PCI address whose parts are amd.bus and intel.bus (device and function 0)
 *   amd.gfx 97                a share of time in percent; amd.umc, amd.energy (counter), amd.ce, amd.ue likewise
 *   intel.size, intel.free    memory in bytes; intel.local 0 for memory of the machine
 *   intel.active, intel.time  an engine's busy microseconds and their clock; intel.celsius, intel.memory_celsius
 *   error.FUNCTION 2          what a function returns; hang.FUNCTION 1: it does not return
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint32_t u32;
typedef uint64_t u64;

static double said(const char *prefix, const char *key, double otherwise) {
    const char *path = getenv("FAKE_VENDORS_SCRIPT");
    FILE *file = path ? fopen(path, "r") : NULL;
    char wanted[96], name[96];
    double value, found = otherwise;
    snprintf(wanted, sizeof wanted, "%s%s", prefix, key);
    while (file && fscanf(file, "%95s %lf", name, &value) == 2)
        if (!strcmp(name, wanted))
            found = value;
    if (file)
        fclose(file);
    return found;
}

static u32 enter(const char *function) {
    while (said("hang.", function, 0))
        usleep(1000);
    return (u32)said("error.", function, 0);
}

#define BEGIN                     \
    u32 code = enter(__func__);   \
    if (code)                     \
    return code

static void *handle(u32 number) { return (void *)(uintptr_t)(number + 1); }

static u32 list(u32 count, u32 *into, void **handles) {
    for (u32 at = 0; handles && at < count && at < *into; at++)
        handles[at] = handle(at);
    *into = count;
    return 0;
}

/* amd_smi.h */

typedef struct { u32 gfx, umc, mm, reserved[13]; } Usage;
typedef struct { u64 correctable, uncorrectable, deferred, reserved[5]; } Errors;

u32 amdsmi_init(u64 flags) { BEGIN; return flags == 2 ? 0 : 1; }
u32 amdsmi_shut_down(void) { BEGIN; return 0; }
u32 amdsmi_get_socket_handles(u32 *count, void **into) { BEGIN; return list(1, count, into); }

u32 amdsmi_get_processor_handles(void *socket, u32 *count, void **into) {
    BEGIN;
    (void)socket;
    return list((u32)said("amd", "", 0), count, into);
}

u32 amdsmi_get_gpu_device_bdf(void *card, u64 *into) {
    BEGIN;
    *into = ((u64)said("amd.bus", "", 3) + (uintptr_t)card - 1) << 8;
    return 0;
}

u32 amdsmi_get_gpu_activity(void *card, Usage *into) {
    BEGIN;
    (void)card;
    *into = (Usage){(u32)said("amd.gfx", "", 50), (u32)said("amd.umc", "", 0xFFFFFFFF), 0xFFFF, {0}};
    return 0;
}

u32 amdsmi_get_energy_count(void *card, u64 *energy, float *resolution, u64 *at) {
    BEGIN;
    (void)card;
    *energy = (u64)said("amd.energy", "", 0), *resolution = 15.5f, *at = 1;
    return 0;
}

u32 amdsmi_get_gpu_total_ecc_count(void *card, Errors *into) {
    BEGIN;
    (void)card;
    *into = (Errors){(u64)said("amd.ce", "", 0), (u64)said("amd.ue", "", 0), 0, {0}};
    return 0;
}

/* zes_api.h: a structure that tells its type must be the one that is asked for. */

typedef struct { u32 stype; void *next; u32 domain, bus, device, function; int gen, width; int64_t most; uint8_t have[3]; } Pci;
typedef struct { u32 stype; void *next; u32 type; uint8_t on_tile; u32 tile, location; u64 size; int width, channels; } MemoryProperties;
typedef struct { u32 stype; const void *next; u32 health; u64 free, size; } MemoryState;
typedef struct { u32 stype; void *next; u32 type; uint8_t on_tile; u32 tile; } Engine;
typedef struct { u32 stype; void *next; u32 type; uint8_t on_tile; u32 tile; double most; uint8_t can[3]; } Sensor;
typedef struct { u64 active, timestamp; } Activity;

#define EXPECT(TYPE)          \
    BEGIN;                    \
    (void)part;               \
    if (into->stype != TYPE)  \
    return 0x78000004

u32 zesInit(u32 flags) { BEGIN; return flags; }
u32 zesDriverGet(u32 *count, void **into) { BEGIN; return list(1, count, into); }
u32 zesDeviceGet(void *driver, u32 *count, void **into) { BEGIN; (void)driver; return list((u32)said("intel", "", 0), count, into); }

u32 zesDevicePciGetProperties(void *part, Pci *into) {
    EXPECT(0x2);
    into->domain = into->device = into->function = 0, into->bus = (u32)said("intel.bus", "", 10);
    return 0;
}

#define LISTING(NAME, COUNT) \
    u32 NAME(void *card, u32 *count, void **into) { BEGIN; (void)card; return list(COUNT, count, into); }

LISTING(zesDeviceEnumMemoryModules, 1)
LISTING(zesDeviceEnumEngineGroups, 2)
LISTING(zesDeviceEnumTemperatureSensors, 3)

u32 zesMemoryGetProperties(void *part, MemoryProperties *into) {
    EXPECT(0xB);
    into->location = (u32)said("intel.local", "", 1);
    return 0;
}

u32 zesMemoryGetState(void *part, MemoryState *into) {
    EXPECT(0x1E);
    into->size = (u64)said("intel.size", "", 0), into->free = (u64)said("intel.free", "", 0);
    return 0;
}

/* The first group is of copies, the second of all that computes. */
u32 zesEngineGetProperties(void *part, Engine *into) {
    EXPECT(0x5);
    into->type = part == handle(0) ? 3 : 1;
    return 0;
}

u32 zesEngineGetActivity(void *part, Activity *into) {
    BEGIN;
    (void)part;
    *into = (Activity){(u64)said("intel.active", "", 0), (u64)said("intel.time", "", 0)};
    return 0;
}

/* The chip, the memory, and the board. */
u32 zesTemperatureGetProperties(void *part, Sensor *into) {
    EXPECT(0x14);
    into->type = part == handle(0) ? 1 : part == handle(1) ? 2 : 6;
    return 0;
}

u32 zesTemperatureGetState(void *part, double *into) {
    BEGIN;
    *into = part == handle(1) ? said("intel.memory_celsius", "", 60) : said("intel.celsius", "", 50);
    return 0;
}
