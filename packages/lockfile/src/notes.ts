import { lstatSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { codeOf } from './file-system.js'
import { isDead, pidScope, thisProcess } from './this-process.js'

// Notes that the processes of a user leave for each other, in a folder for temporary files: which process holds a lock,
// and which processes wait. A note is a symbolic link to the name of the process, because the system makes a link with
// its text in one step. Any note may be missing, and no exported function throws: a lock without notes works as in
// proper-lockfile.

const OTHERS = 0o077
/** Age from which the note of a dead process is removed, in milliseconds: its lock is stale by then. */
const OLD = 24 * 3600 * 1000

/**
 * Leaves a note with the name of a process, by default this one.
 * @returns false when the note exists, or can't be created.
 */
export function leaveNote(name: string, owner?: string): boolean {
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      const path = pathOf(name)
      sweep()
      symlinkSync(owner ?? thisProcess(), path)
      return true
    } catch (error) {
      // The folder of a queue is removed when it is empty.
      if (codeOf(error) !== 'ENOENT' || !prepare(name)) return false
    }
  }
  return false
}

/** Returns the process that left a note; undefined if there is none. */
export function readNote(name: string): string | undefined {
  try {
    return readlinkSync(pathOf(name))
  } catch {
    return undefined
  }
}

/** Removes a note. @returns whether this call has removed it. */
export function removeNote(name: string): boolean {
  try {
    unlinkSync(pathOf(name))
    return true
  } catch {
    return false
  }
}

/** Returns the names of the notes in a folder of notes; undefined if there is no such folder. */
export function notesIn(folder: string): string[] | undefined {
  try {
    return readdirSync(pathOf(folder))
  } catch {
    return undefined
  }
}

/** Removes a folder of notes if it is empty. */
export function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(pathOf(folder))
  } catch {
    // Another process has left a note there, or has removed it.
  }
}

/** The folder that this process has swept. */
let swept: string | undefined

/**
 * Removes old notes of dead processes, once. The note of a holder remains when proper-lockfile has taken the lock over,
 * and the note of a waiter when no caller has waited since.
 */
function sweep(): void {
  const folder = root()
  if (swept === folder) return
  swept = folder
  for (const name of notesIn('.') ?? []) {
    const found = lstatSync(join(folder, name), { throwIfNoEntry: false })
    if (found === undefined || found.mtimeMs > Date.now() - OLD) continue
    if (found.isSymbolicLink()) removeIfDead(name)
    else sweepQueue(name)
  }
}

function sweepQueue(name: string): void {
  for (const ticket of notesIn(name) ?? []) removeIfDead(`${name}/${ticket}`)
  removeIfEmpty(name)
}

function removeIfDead(name: string): void {
  const owner = readNote(name)
  if (owner !== undefined && isDead(owner)) removeNote(name)
}

function root(): string {
  return join(tmpdir(), `signalbox-lockfile-${process.getuid?.() ?? 'user'}-${pidScope()}`)
}

/** @throws Error when another user could leave notes, or the folder does not exist yet */
function pathOf(name: string): string {
  const folder = root()
  const found = lstatSync(folder)
  const uid = process.getuid?.()
  const isSafe = uid === undefined || (found.uid === uid && (found.mode & OTHERS) === 0)
  if (!found.isDirectory() || !isSafe) throw new Error(`${folder} is not a folder of this user alone`)
  return join(folder, name)
}

/** Creates the folders for a note. */
function prepare(name: string): boolean {
  try {
    mkdirSync(join(root(), dirname(name)), { recursive: true, mode: 0o700 })
    return true
  } catch {
    return false
  }
}
