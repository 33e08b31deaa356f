/** One call: milliseconds on the machine's monotonic clock. */
export interface Call {
  /** When the caller asked the strategy for leave. */
  readonly asked: number
  /** When it had leave. */
  readonly sent: number
  /** When the service saw it. */
  readonly arrived: number
}
