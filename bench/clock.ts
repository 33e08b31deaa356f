/** What `performance.now()` counts from in this process, on the system's monotonic clock, in milliseconds. */
const ORIGIN = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** The monotonic clock of the machine, the same in all processes, in milliseconds. */
export function now(): number {
  return performance.now() + ORIGIN
}
