import { InvalidArgumentError, shown } from './errors.js'

/** What ZooKeeper refuses in paths: control characters, halves of surrogate pairs and the ranges behind them. */
// eslint-disable-next-line no-control-regex -- those are the ones that are refused
const UNFIT = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/

/**
 * Checks a path: absolute, without empty, `.` and `..` parts, without a slash at its end, of characters that servers
 * take.
 * @param sequential the server adds a number to it, so that it may end with a slash.
 * @throws InvalidArgumentError
 */
export function checkPath(path: unknown, sequential = false): asserts path is string {
  if (typeof path !== 'string' || !path.startsWith('/')) throw unfit(path, "which does not begin with '/'")
  if (path === '/') return
  if (UNFIT.test(path)) throw unfit(path, 'with a character that ZooKeeper refuses')
  const parts = (sequential ? `${path}0` : path).slice(1).split('/')
  for (const part of parts) {
    if (part === '') throw unfit(path, 'with an empty part')
    if (part === '.' || part === '..') throw unfit(path, "with a part '.' or '..'")
  }
}

/** Checks a path below which children are to be. @throws InvalidArgumentError */
export function checkFolder(path: unknown): void {
  checkPath(path)
  if (path === '/') throw unfit(path, 'which is the root of all')
}

/** The path with what a client's chroot puts before it. */
export function below(chroot: string, path: string): string {
  if (chroot === '') return path
  return path === '/' ? chroot : chroot + path
}

/** The path as the client of a chroot knows it. */
export function without(chroot: string, path: string): string {
  if (chroot === '' || !path.startsWith(chroot)) return path
  return path.length === chroot.length ? '/' : path.slice(chroot.length)
}

function unfit(path: unknown, why: string): InvalidArgumentError {
  return new InvalidArgumentError(`path must be a path like '/a/b', not ${shown(path)}, ${why}`)
}

/** The order of creation of sequential nodes whose names end with `-` and the number. The numbers run in a circle. */
export function bySequence(one: string, other: string): number {
  return (sequenceOf(one) - sequenceOf(other)) | 0
}

function sequenceOf(name: string): number {
  return Number(/-(-?\d{10})$/.exec(name)?.[1] ?? 0)
}
