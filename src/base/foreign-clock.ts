import { UnavailableError } from './errors.js'

/** `clock_gettime` of the C library: writes seconds and nanoseconds, and returns 0. */
type GetTime = (id: number, time: BigInt64Array) => number

/** The part of `bun:ffi`, and of the global `Deno`, that calls the C library. */
interface Ffi {
  dlopen(library: string, symbols: object): { readonly symbols: { readonly clock_gettime: GetTime } }
}

/** The C library of Linux: musl also has this name. */
const LIBRARY = 'libc.so.6'
/** The clock that `process.hrtime` of Node reads on Linux. */
const CLOCK_MONOTONIC = 1

/**
 * Returns a function that reads the system's monotonic clock, in milliseconds. On Bun and Deno only the C library has
 * it: their own clocks begin at 0 in each process and thread.
 * @throws UnavailableError when the runtime can't call the C library.
 */
export function foreignClock(runtime: 'Bun' | 'Deno'): () => number {
  const getTime = load(runtime)
  const time = new BigInt64Array(2)
  return () => {
    getTime(CLOCK_MONOTONIC, time)
    return Number(time[0]) * 1e3 + Number(time[1]) * 1e-6
  }
}

function load(runtime: 'Bun' | 'Deno'): GetTime {
  try {
    if (process.platform !== 'linux') throw new Error(`the platform is ${process.platform}, not linux`)
    const [ffi, signature] =
      runtime === 'Bun'
        ? [process.getBuiltinModule('bun:ffi' as 'node:fs'), { args: ['i32', 'ptr'], returns: 'i32' }]
        : [(globalThis as { Deno?: unknown }).Deno, { parameters: ['i32', 'buffer'], result: 'i32' }]
    return (ffi as Ffi).dlopen(LIBRARY, { clock_gettime: signature }).symbols.clock_gettime
  } catch (cause) {
    throw new UnavailableError(
      `can't read the clock that processes and threads share: on ${runtime}, this needs Linux and a call into the C ` +
        `library${runtime === 'Deno' ? ', which --allow-ffi permits' : ''}`,
      { cause },
    )
  }
}
