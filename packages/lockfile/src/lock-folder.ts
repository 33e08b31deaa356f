import { randomBytes } from 'node:crypto'
import { lstatSync, readdirSync, renameSync, rmdirSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import {
  call,
  codeOf,
  disk,
  errorOf,
  runSync,
  type FileSystem,
  type Found,
  type Steps,
} from './file-system.js'
import { leaveNote, readNote, removeNote } from './notes.js'
import { isDead } from './this-process.js'

/** A lock folder as this process has made it. */
export interface Made {
  readonly mtime: Date
  readonly ino: number | bigint
  /** The name of the note about its holder, if there is one. */
  readonly note: string | undefined
}

/** A lock folder as callers name it, and when it may be removed. */
export interface Wanted {
  readonly file: string
  readonly folder: string
  readonly stale: number
  readonly fs: FileSystem
  /** Whether a lock of this process has the note of this name, however long it was not updated. */
  readonly isHeldHere: (note: string) => boolean
}

/** The error of a lock that is held. */
class LockedError extends Error {
  readonly code = 'ELOCKED'

  constructor(readonly file: string) {
    super('Lock file is already being held')
  }
}

/**
 * Makes the folder, after removing one whose holder is dead or has not updated it for as long as `stale`.
 * @throws LockedError when it is held, and what the file system says
 */
export function* make(wanted: Wanted): Steps<Made> {
  const { file, folder, fs } = wanted
  for (let mayRemove = true; ; mayRemove = false) {
    try {
      yield* call('mkdir', folder)
      break
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
    // Once, because processes that remove it and then are late could go on for ever.
    if (!mayRemove) throw new LockedError(file)
    const found = yield* look(folder)
    if (found !== undefined) yield* remove(wanted, found)
  }
  let found: Found
  try {
    found = yield* call('stat', folder)
  } catch (error) {
    yield* removeFolder(folder)
    throw error
  }
  const { mtime, ino } = found
  const note = fs === disk ? noteName(found) : undefined
  if (note === undefined || leaveNote(note)) return { mtime, ino, note }
  // It is the folder of a process that took the lock over while this one was stopped.
  if (readNote(note) !== undefined) throw new LockedError(file)
  return { mtime, ino, note: undefined }
}

/** Whether the file is locked. */
export function* isHeld(wanted: Wanted): Steps<boolean> {
  const found = yield* look(wanted.folder)
  return found !== undefined && !isAbandoned(wanted, found, holderOf(found))
}

/** The folder as it is now; undefined when there is none. */
export function* look(folder: string): Steps<Found | undefined> {
  try {
    return yield* call('stat', folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Removes a folder that may be gone. */
export function* removeFolder(folder: string): Steps<void> {
  try {
    yield* call('rmdir', folder)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** Removes the folder of another holder. @throws LockedError when it may not, or another process does. */
function* remove(wanted: Wanted, found: Found): Steps<void> {
  const { file, folder, fs } = wanted
  const holder = holderOf(found)
  if (!isAbandoned(wanted, found, holder)) throw new LockedError(file)
  if (fs !== disk) return yield* removeFolder(folder)
  const note = noteName(found)
  if (note !== undefined && !claim(note, holder)) throw new LockedError(file)
  try {
    removeIfSame(folder, found)
  } catch (error) {
    // The next caller must find the holder dead, too.
    if (note !== undefined && holder !== undefined) leaveNote(note, holder)
    throw error
  } finally {
    if (note !== undefined && holder === undefined) removeNote(note)
  }
}

function isAbandoned({ stale, isHeldHere }: Wanted, found: Found, holder: string | undefined): boolean {
  const note = noteName(found)
  if (note !== undefined && isHeldHere(note)) return false
  return found.mtime.getTime() < Date.now() - stale || (holder !== undefined && isDead(holder))
}

/**
 * Lets one of the processes that find a folder abandoned remove it: the one that removes the note of its holder, or
 * leaves one where there was none. Where notes can't be left or removed, each may.
 */
function claim(note: string, holder: string | undefined): boolean {
  if (holder !== undefined) return removeNote(note) || readNote(note) === holder
  return leaveNote(note) || readNote(note) === undefined
}

/** The folder as it is now, at once. A folder that can't be examined counts as gone. */
export function lookSync(folder: string): Found | undefined {
  try {
    return runSync(look(folder), disk)
  } catch {
    return undefined
  }
}

/** The process that holds a folder, if it has left a note. */
export function holderOf(found: Found): string | undefined {
  const note = noteName(found)
  return note === undefined ? undefined : readNote(note)
}

/**
 * The name of the note about a folder: what distinguishes it from all that were and will be at its path. Undefined
 * where the file system does not store when a folder was made.
 */
export function noteName({ dev, ino, birthtimeNs }: Found): string | undefined {
  return birthtimeNs === undefined || birthtimeNs === 0n ? undefined : [dev, ino, birthtimeNs].join('-')
}

/**
 * Removes the folder if it is still the one that was found. It is moved aside first, because another process may
 * replace what is at the path between a look and a removal. Without waiting, so that the folder of a living holder is
 * back before its holder looks.
 */
function removeIfSame(folder: string, found: Found): void {
  // File systems limit the length of a name, mostly to 255 bytes.
  const aside = join(dirname(folder), `${basename(folder).slice(0, 60)}.${randomBytes(6).toString('hex')}`)
  try {
    checkRemovable(folder)
    if (!isSame(runSync(call('stat', folder), disk), found)) return
    // With the separator, POSIX renames nothing but a folder, even if another process has replaced it since.
    renameSync(folder + sep, aside)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    if (codeOf(error) !== 'EXDEV') throw error
    // In a container, a folder of the image can be removed, but not renamed.
    return runSync(removeFolder(folder), disk)
  }
  let isRemoved = false
  try {
    if (isSame(runSync(call('stat', aside), disk), found)) {
      rmdirSync(aside)
      isRemoved = true
    }
  } finally {
    if (!isRemoved) renameSync(aside, folder)
  }
}

/**
 * Refuses what no holder has made, such as Gemfile.lock or a folder in use, before anything is moved.
 * @throws Error the one of a removal, as of proper-lockfile: `ENOTDIR`, `ENOTEMPTY`; what the file system says
 */
function checkRemovable(folder: string): void {
  if (!lstatSync(folder).isDirectory())
    throw errorOf('ENOTDIR', `ENOTDIR: not a directory, rmdir '${folder}'`)
  if (readdirSync(folder).length > 0)
    throw errorOf('ENOTEMPTY', `ENOTEMPTY: directory not empty, rmdir '${folder}'`)
}

function isSame(one: Found, other: Found): boolean {
  return one.ino === other.ino && one.mtime.getTime() === other.mtime.getTime()
}
