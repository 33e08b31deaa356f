/** Milliseconds on the machine's monotonic clock, which all processes share. */
export function monotonic(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds * 1e-6
}
