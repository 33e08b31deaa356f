import { systemClock, type Timer } from 'signalbox/engine'
import { atExit } from './exit.js'
import {
  call,
  codeOf,
  disk,
  errorOf,
  runSync,
  type FileSystem,
  type Found,
  type Run,
  type Steps,
} from './file-system.js'
import { MIN_STALE } from './options.js'
import { look, noteName, removeFolder, type Made } from './lock-folder.js'
import { leaveNote, removeNote } from './notes.js'

/** After how long an update that failed is repeated, in milliseconds. */
const REPEAT = 1000

/** The coarsest times of modification that a file system stores, in milliseconds. */
const COARSEST = 2000

/** How a lock is kept until its release. */
export interface Keeping {
  readonly file: string
  readonly folder: string
  readonly fs: FileSystem
  /** Executes its updates. */
  readonly run: Run
  readonly stale: number
  readonly update: number
  readonly onCompromised: (error: Error) => unknown
}

/** The locks of this process by their folders, for every copy of this module in it. */
const LOCKS = Symbol.for('signalbox.lockfile')

/** The locks of this process or thread by their folders. They are released when it ends. */
export function heldLocks(): Map<string, HeldLock> {
  const shared = globalThis as { [LOCKS]?: Map<string, HeldLock> }
  return (shared[LOCKS] ??= releasedAtExit(new Map()))
}

function releasedAtExit(locks: Map<string, HeldLock>): Map<string, HeldLock> {
  atExit(() => {
    for (const lock of [...locks.values()]) lock.releaseAtExit()
  })
  return locks
}

/** A lock that this process holds. It updates the time of its folder, and finds out when it is compromised. */
export class HeldLock {
  readonly file: string
  readonly note: string | undefined
  readonly #keeping: Keeping
  readonly #ino: Made['ino']
  /** Whether the file system stores milliseconds; exFAT has 10 ms, and FAT 2 s. */
  readonly #isPrecise: boolean
  #mtime: number
  /** What an update may have written already. */
  #nextMtime: number | undefined
  #lastUpdate = systemClock.now()
  /** How far the wall clock is ahead, by which others find the lock stale. */
  #wallAhead = Date.now() - this.#lastUpdate
  #updating: Promise<void> | undefined
  #isWriting = false
  #timer: Timer | undefined
  #isOver = false
  #compromised: Error | undefined

  constructor(keeping: Keeping, { mtime, ino, note }: Made) {
    this.file = keeping.file
    this.note = note
    this.#keeping = keeping
    this.#ino = ino
    this.#mtime = mtime.getTime()
    this.#isPrecise = this.#mtime % 10 !== 0
    heldLocks().set(keeping.folder, this)
    this.#updateAfter(keeping.update)
  }

  /**
   * Removes the folder, unless another process has taken the lock over.
   * @param fs where to remove it
   * @throws Error `ERELEASED` when the lock was released before or is compromised; what the file system says
   */
  *release(fs: FileSystem): Steps<void> {
    if (this.#isOver) throw this.#released()
    this.#end()
    const now = systemClock.now()
    const wasSet = Math.abs(Date.now() - now - this.#wallAhead) >= MIN_STALE / 2
    const mayBeTaken = wasSet || now - this.#lastUpdate >= MIN_STALE / 2
    if (mayBeTaken && fs === disk && this.#keeping.fs === disk) {
      const found = yield* look(this.#keeping.folder)
      if (found !== undefined && !this.#isOurs(found)) {
        this.#compromise(errorOf('ECOMPROMISED', 'Another process has taken the lock over'))
        throw this.#released()
      }
    }
    this.#removeNote()
    try {
      yield* removeFolder(this.#keeping.folder)
    } catch (error) {
      // It is free once it is stale, or this process has ended.
      if (this.note !== undefined) leaveNote(this.note)
      throw error
    }
  }

  /** Waits for an update that is being written. After a release, it would change the folder of the next holder. */
  async written(): Promise<void> {
    if (this.#isWriting) await this.#updating
  }

  /** Removes the folder at once, if it can. */
  releaseAtExit(): void {
    try {
      runSync(this.release(this.#keeping.fs), this.#keeping.fs)
    } catch {
      // Others find the lock abandoned.
    }
  }

  #updateAfter(delay: number): void {
    const { run, fs } = this.#keeping
    const update = async (): Promise<void> => {
      const next = await run(this.#update(), fs)
      if (next !== undefined) this.#updateAfter(next)
    }
    // The process may end: that releases the lock.
    this.#timer = systemClock.after(delay, () => void (this.#updating = update()), false)
  }

  /** @returns when to update again; undefined when the lock is over. */
  *#update(): Steps<number | undefined> {
    const { folder, stale, update } = this.#keeping
    try {
      const found = yield* call('stat', folder)
      if (this.#isOver) return undefined
      // When it is still ours, it is good in spite of a sleep of the machine or a busy event loop.
      if (found.mtime.getTime() !== this.#mtime) {
        this.#compromise(errorOf('ECOMPROMISED', 'Unable to update lock within the stale threshold'))
        return undefined
      }
      const now = Date.now()
      this.#nextMtime = this.#isPrecise ? now : Math.ceil(now / COARSEST) * COARSEST
      const time = new Date(this.#nextMtime)
      this.#isWriting = true
      yield* call('utimes', folder, time, time)
      this.#mtime = this.#nextMtime
      this.#lastUpdate = systemClock.now()
      this.#wallAhead = Date.now() - this.#lastUpdate
      return this.#isOver ? undefined : update
    } catch (error) {
      if (this.#isOver) return undefined
      if (codeOf(error) !== 'ENOENT' && systemClock.now() <= this.#lastUpdate + stale) return REPEAT
      this.#compromise(Object.assign(error as Error, { code: 'ECOMPROMISED' }))
      return undefined
    } finally {
      this.#isWriting = false
    }
  }

  /** Whether a folder that was found is the one of this lock. */
  #isOurs(found: Found): boolean {
    if (this.note !== undefined && this.note === noteName(found)) return true
    const time = found.mtime.getTime()
    return found.ino === this.#ino && (time === this.#mtime || time === this.#nextMtime)
  }

  #compromise(error: Error): void {
    this.#compromised = error
    this.#end()
    this.#removeNote()
    // What it throws ends the process, as an error in a timer does.
    process.nextTick(this.#keeping.onCompromised, error)
  }

  #end(): void {
    const { folder } = this.#keeping
    this.#isOver = true
    this.#timer?.cancel()
    if (heldLocks().get(folder) === this) heldLocks().delete(folder)
  }

  #removeNote(): void {
    if (this.note !== undefined) removeNote(this.note)
  }

  #released(): Error {
    return errorOf('ERELEASED', 'Lock is already released', this.#compromised)
  }
}
