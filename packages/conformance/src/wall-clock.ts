const TrueDate = globalThis.Date
let shift = 0

const now = (): number => TrueDate.now() + shift

const ShiftedDate = new Proxy(TrueDate, {
  get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
  apply: () => new TrueDate(now()).toString(),
  construct: (target, time, called) =>
    Reflect.construct(target, time.length === 0 ? [now()] : time, called) as Date,
})

/**
 * Sets the wall clock of this process ahead of the true time, or behind it for a negative number. It changes
 * `Date.now()`, `new Date()` and `Date()`; the clock goes on from there. Code that took a reference to `Date` or
 * `Date.now` before the first call keeps the true one. No other clock and no timer changes.
 * @param ahead milliseconds
 */
export function shiftWallClock(ahead: number): void {
  shift = ahead
  globalThis.Date = ShiftedDate
}
