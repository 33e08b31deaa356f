/** The times of one call, in milliseconds on the machine's monotonic clock. */
export interface Call {
  /** When the caller asked the strategy for a permit. */
  readonly asked: number
  /** When the caller got the permit. */
  readonly sent: number
  /** When the service received the call. */
  readonly arrived: number
}
