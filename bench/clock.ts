/** Time at which `performance.now()` was 0 in this process, on the system's monotonic clock, in milliseconds. */
const ORIGIN = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Returns the time of the machine's monotonic clock, the same in all processes, in milliseconds. */
export function now(): number {
  return performance.now() + ORIGIN
}
