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
 * Sets the wall clock of this process so many milliseconds ahead of the true time, or behind it when that is negative: what
 * all of its JavaScript gets from `Date.now()`, `new Date()` and `Date()`. It goes on from there. Who has taken `Date` or
 * `Date.now` before the first call keeps the true ones. No other clock and no timer changes.
 */
export function shiftWallClock(ahead: number): void {
  shift = ahead
  globalThis.Date = ShiftedDate
}
