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
  type FolderState,
  type Steps,
} from './file-system.js'
import { leaveNote, readNote, removeNote } from './notes.js'
import { isDead } from './this-process.js'

// A lock is a folder, by default FILE.lock. If the file system stores when a folder was created, the holder leaves a
// note: a symbolic link named DEVICE-INODE-CREATION, in a folder for temporary files (see notes.ts). Its target is the
// name of the holder. Of the processes that find the holder dead, only the one that removes the note may remove the
// folder.

/** A lock folder that this process has created. */
export interface CreatedFolder {
  readonly mtime: Date
  readonly ino: number | bigint
  /** The name of the note about its holder, if there is one. */
  readonly note: string | undefined
}

/** A lock folder that a caller wants to create, and the conditions for removing an existing one. */
export interface LockRequest {
  readonly file: string
  readonly folder: string
  readonly stale: number
  readonly fs: FileSystem
  /** Whether a lock of this process has the note of this name. Such a lock is held even without updates. */
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
 * Creates the folder, after removing one whose holder is dead or has not updated it for the time `stale`.
 * @throws LockedError when it is held; errors of the file system
 */
export function* createFolder(wanted: LockRequest): Steps<CreatedFolder> {
  const { file, folder, fs } = wanted
  for (let mayRemove = true; ; mayRemove = false) {
    try {
      yield* call('mkdir', folder)
      break
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
    // Only once, because processes that remove it and then are late to create it could repeat this forever.
    if (!mayRemove) throw new LockedError(file)
    const found = yield* folderState(folder)
    if (found !== undefined) yield* remove(wanted, found)
  }
  let found: FolderState
  try {
    found = yield* call('stat', folder)
  } catch (error) {
    yield* removeFolder(folder)
    throw error
  }
  const { mtime, ino } = found
  const note = fs === disk ? noteName(found) : undefined
  if (note === undefined || leaveNote(note)) return { mtime, ino, note }
  // The folder belongs to a process that has taken the lock over while this one was stopped.
  if (readNote(note) !== undefined) throw new LockedError(file)
  return { mtime, ino, note: undefined }
}

/** Whether the file is locked. */
export function* isHeld(wanted: LockRequest): Steps<boolean> {
  const found = yield* folderState(wanted.folder)
  return found !== undefined && !isAbandoned(wanted, found, holderOf(found))
}

/** Returns the current state of the folder; undefined if there is none. */
export function* folderState(folder: string): Steps<FolderState | undefined> {
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

/** Removes the folder of another holder. @throws LockedError when it is held, or another process removes it. */
function* remove(wanted: LockRequest, found: FolderState): Steps<void> {
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

function isAbandoned(
  { stale, isHeldHere }: LockRequest,
  found: FolderState,
  holder: string | undefined,
): boolean {
  const note = noteName(found)
  if (note !== undefined && isHeldHere(note)) return false
  return found.mtime.getTime() < Date.now() - stale || (holder !== undefined && isDead(holder))
}

/**
 * Lets only one of the processes that find a folder abandoned remove it: the one that removes the note of its holder,
 * or leaves a note if there was none. If notes can't be left or removed, each process may remove the folder.
 */
function claim(note: string, holder: string | undefined): boolean {
  if (holder !== undefined) return removeNote(note) || readNote(note) === holder
  return leaveNote(note) || readNote(note) === undefined
}

/** Returns the current state of the folder, at once. A folder that can't be examined counts as missing. */
export function folderStateSync(folder: string): FolderState | undefined {
  try {
    return runSync(folderState(folder), disk)
  } catch {
    return undefined
  }
}

/** Returns the process that holds a folder, if it has left a note. */
export function holderOf(found: FolderState): string | undefined {
  const note = noteName(found)
  return note === undefined ? undefined : readNote(note)
}

/**
 * Returns the name of the note about a folder. It identifies this folder among all earlier and later ones at its path.
 * Undefined if the file system does not store when a folder was created.
 */
export function noteName({ dev, ino, birthtimeNs }: FolderState): string | undefined {
  return birthtimeNs === undefined || birthtimeNs === 0n ? undefined : [dev, ino, birthtimeNs].join('-')
}

/**
 * Removes the folder if it is still the one that was found. It is moved aside first, because another process may
 * replace the folder between the check and the removal. All calls are synchronous, so that the folder of a live holder
 * is back before its holder checks it.
 */
function removeIfSame(folder: string, found: FolderState): void {
  // File systems limit the length of a name, often to 255 bytes.
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
 * Rejects a file or folder that no holder has created, such as Gemfile.lock or a folder with files, before it is moved.
 * @throws the same errors as a removal in proper-lockfile: `ENOTDIR`, `ENOTEMPTY`; other errors of the file system
 */
function checkRemovable(folder: string): void {
  if (!lstatSync(folder).isDirectory())
    throw errorOf('ENOTDIR', `ENOTDIR: not a directory, rmdir '${folder}'`)
  if (readdirSync(folder).length > 0)
    throw errorOf('ENOTEMPTY', `ENOTEMPTY: directory not empty, rmdir '${folder}'`)
}

function isSame(one: FolderState, other: FolderState): boolean {
  return one.ino === other.ino && one.mtime.getTime() === other.mtime.getTime()
}
