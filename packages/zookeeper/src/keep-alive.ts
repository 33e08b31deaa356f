import { after, type Timer } from './clock.js'

const FOREVER = 2 ** 31 - 1

let waiting = 0
let timer: Timer | undefined

/** Keeps the process alive until `letProcessEnd` was called as many times. Sockets and other timers do not. */
export function keepProcessAlive(): void {
  waiting++
  timer ??= after(FOREVER, () => undefined, true)
}

/** Reverts one call of `keepProcessAlive`. */
export function letProcessEnd(): void {
  waiting--
  if (waiting > 0) return
  timer?.cancel()
  timer = undefined
}
