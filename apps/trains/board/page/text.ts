import type { LockUser } from '../../lock-in-use.js'

/** Who holds or awaits a lock, in words. */
export function named({ who, train }: LockUser): string {
  return train === undefined ? who : `train ${train} (${who})`
}

/** A time of the timetable, whose day has more than 24 hours. */
export function clock(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  return `${Math.floor(minutes / 60) % 24}:${String(minutes % 60).padStart(2, '0')}`
}
