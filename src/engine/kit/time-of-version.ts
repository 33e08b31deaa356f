/**
 * Returns when a value was written, in milliseconds since 1970, for engines whose versions are microseconds of a wall
 * clock. If that clock was set back, versions continue from the later time, and so do these times.
 */
export function timeOfVersion(version: number): number {
  return Math.floor(version / 1000)
}
