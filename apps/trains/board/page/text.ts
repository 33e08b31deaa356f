import { printable } from 'signalbox/reports'
import type { LockUser } from '../../lock-in-use.js'

/** Describes a holder of a lock, or a waiter for one. */
export function named({ who, train }: LockUser): string {
  return printable(train === undefined ? who : `train ${train} (${who})`)
}

/** Returns the time of the timetable that passes in one second, as text. */
export function pace(speed: number): string {
  const unit = speed < 60 ? 'second' : 'minute'
  const number = speed < 60 ? speed : speed / 60
  return number.toLocaleString('en', { style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 1 })
}

/** Formats a time of the timetable as a time of day. The timetable continues past 24 hours. */
export function clock(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  return `${Math.floor(minutes / 60) % 24}:${String(minutes % 60).padStart(2, '0')}`
}
