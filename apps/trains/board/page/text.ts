import { printable } from '../../../../src/base/printable.js'
import type { LockUser } from '../../lock-in-use.js'

/** Who holds or awaits a lock, in words. */
export function named({ who, train }: LockUser): string {
  return printable(train === undefined ? who : `train ${train} (${who})`)
}

/** How much of the timetable passes in a second. */
export function pace(speed: number): string {
  const unit = speed < 60 ? 'second' : 'minute'
  const number = speed < 60 ? speed : speed / 60
  return number.toLocaleString('en', { style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 1 })
}

/** A time of the timetable, whose day has more than 24 hours. */
export function clock(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  return `${Math.floor(minutes / 60) % 24}:${String(minutes % 60).padStart(2, '0')}`
}
