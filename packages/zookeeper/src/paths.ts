import { InvalidArgumentError, shown } from './errors.js'

/**
 * Characters that ZooKeeper rejects in paths: control characters, halves of surrogate pairs, and the ranges behind
 * them.
 */
// eslint-disable-next-line no-control-regex -- those are the ones that are refused
const INVALID = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/

/**
 * Checks a path: absolute, without empty, `.` or `..` parts, without a slash at its end, and without characters that
 * servers reject.
 * @param sequential the server appends a number, so that it may end with a slash.
 * @throws InvalidArgumentError
 */
export function checkPath(path: unknown, sequential = false): asserts path is string {
  if (typeof path !== 'string' || !path.startsWith('/')) throw invalid(path, "which does not begin with '/'")
  if (path === '/') return
  if (INVALID.test(path)) throw invalid(path, 'with a character that ZooKeeper refuses')
  const parts = (sequential ? `${path}0` : path).slice(1).split('/')
  for (const part of parts) {
    if (part === '') throw invalid(path, 'with an empty part')
    if (part === '.' || part === '..') throw invalid(path, "with a part '.' or '..'")
  }
}

/** Checks a path that will have children. @throws InvalidArgumentError */
export function checkFolder(path: unknown): void {
  checkPath(path)
  if (path === '/') throw invalid(path, 'which is the root of all')
}

/** Prepends a chroot to a path. */
export function below(chroot: string, path: string): string {
  if (chroot === '') return path
  return path === '/' ? chroot : chroot + path
}

/** Removes a chroot from a path. */
export function without(chroot: string, path: string): string {
  if (chroot === '' || !path.startsWith(chroot)) return path
  return path.length === chroot.length ? '/' : path.slice(chroot.length)
}

function invalid(path: unknown, why: string): InvalidArgumentError {
  return new InvalidArgumentError(`path must be a path like '/a/b', not ${shown(path)}, ${why}`)
}

/** Compares sequential nodes by creation; their names end with `-` and the number, which wraps around. */
export function bySequence(one: string, other: string): number {
  return (sequenceOf(one) - sequenceOf(other)) | 0
}

function sequenceOf(name: string): number {
  return Number(/-(-?\d{10})$/.exec(name)?.[1] ?? 0)
}
