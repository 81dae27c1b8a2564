/* Ends well where llama.cpp's use of AMX works. It does not with GCC 12, which takes only the first eight
 * bytes of a tile configuration for read and drops the stores to the others; nor on a machine that
 * reports AMX and has none. */
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

struct tiles {
    unsigned char palette, start_row, reserved[14];
    unsigned short row_bytes[16];
    unsigned char rows[16];
};

int main(void) {
    const long request_permission = 0x1023, tile_data = 18; /* of arch_prctl */
    if (syscall(SYS_arch_prctl, request_permission, tile_data) != 0) return 0; /* llama.cpp asks, too */
    struct tiles tiles __attribute__((aligned(64))) = {0};
    tiles.palette = 1;
    tiles.row_bytes[0] = 64;
    tiles.rows[0] = 16;
    _tile_loadconfig(&tiles);
    _tile_zero(0);
    _tile_release();
    return 0;
}
