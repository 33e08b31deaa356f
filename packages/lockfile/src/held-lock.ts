import { systemClock, type Timer } from 'signalbox/engine'
import { atExit } from './exit.js'
import {
  call,
  codeOf,
  disk,
  errorOf,
  runSync,
  type FileSystem,
  type FolderState,
  type Run,
  type Steps,
} from './file-system.js'
import { MIN_STALE } from './options.js'
import { folderState, noteName, removeFolder, type CreatedFolder } from './lock-folder.js'
import { leaveNote, removeNote } from './notes.js'

/** Delay after which a failed update is repeated, in milliseconds. */
const REPEAT = 1000

/** The coarsest resolution of modification times in a file system, in milliseconds. */
const COARSEST = 2000

/** Everything needed to keep a lock until its release. */
export interface LockSettings {
  readonly file: string
  readonly folder: string
  readonly fs: FileSystem
  /** Executes its updates. */
  readonly run: Run
  readonly stale: number
  readonly update: number
  readonly onCompromised: (error: Error) => unknown
}

/** The property of `globalThis` with the locks of this process, which all copies of this module share. */
const LOCKS = Symbol.for('signalbox.lockfile')

/** Returns the locks of this process or thread, by folder. They are released when it ends. */
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

/** A lock that this process holds. It updates the time of its folder, and detects when it is compromised. */
export class HeldLock {
  readonly file: string
  readonly note: string | undefined
  readonly #settings: LockSettings
  readonly #ino: CreatedFolder['ino']
  /** Whether the file system stores milliseconds. exFAT stores multiples of 10 ms, and FAT of 2 s. */
  readonly #isPrecise: boolean
  #mtime: number
  /** The time that an update may have written already. */
  #nextMtime: number | undefined
  #lastUpdate = systemClock.now()
  /**
   * Offset of the wall clock from the system clock, in milliseconds. Others decide by the wall clock whether the lock
   * is stale.
   */
  #wallAhead = Date.now() - this.#lastUpdate
  #updating: Promise<void> | undefined
  #isWriting = false
  #timer: Timer | undefined
  #isOver = false
  #compromised: Error | undefined

  constructor(settings: LockSettings, { mtime, ino, note }: CreatedFolder) {
    this.file = settings.file
    this.note = note
    this.#settings = settings
    this.#ino = ino
    this.#mtime = mtime.getTime()
    this.#isPrecise = this.#mtime % 10 !== 0
    heldLocks().set(settings.folder, this)
    this.#updateAfter(settings.update)
  }

  /**
   * Removes the folder, unless another process has taken the lock over.
   * @param fs where to remove it
   * @throws Error `ERELEASED` when the lock was released before or is compromised; errors of the file system
   */
  *release(fs: FileSystem): Steps<void> {
    if (this.#isOver) throw this.#released()
    this.#end()
    const now = systemClock.now()
    const wasSet = Math.abs(Date.now() - now - this.#wallAhead) >= MIN_STALE / 2
    const mayBeTaken = wasSet || now - this.#lastUpdate >= MIN_STALE / 2
    if (mayBeTaken && fs === disk && this.#settings.fs === disk) {
      const found = yield* folderState(this.#settings.folder)
      if (found !== undefined && !this.#isOurs(found)) {
        this.#compromise(errorOf('ECOMPROMISED', 'Another process has taken the lock over'))
        throw this.#released()
      }
    }
    this.#removeNote()
    try {
      yield* removeFolder(this.#settings.folder)
    } catch (error) {
      // The lock becomes free when it is stale, or when this process has ended.
      if (this.note !== undefined) leaveNote(this.note)
      throw error
    }
  }

  /** Waits for an update that is being written. After a release, the update would change the next holder's folder. */
  async written(): Promise<void> {
    if (this.#isWriting) await this.#updating
  }

  /** Removes the folder at once, if possible. */
  releaseAtExit(): void {
    try {
      runSync(this.release(this.#settings.fs), this.#settings.fs)
    } catch {
      // Others will find that the holder is dead.
    }
  }

  #updateAfter(delay: number): void {
    const { run, fs } = this.#settings
    const update = async (): Promise<void> => {
      const next = await run(this.#update(), fs)
      if (next !== undefined) this.#updateAfter(next)
    }
    // The timer does not keep the process alive: its end releases the lock.
    this.#timer = systemClock.after(delay, () => void (this.#updating = update()), false)
  }

  /** @returns the delay until the next update, in milliseconds; undefined if the lock has ended. */
  *#update(): Steps<number | undefined> {
    const { folder, stale, update } = this.#settings
    try {
      const found = yield* call('stat', folder)
      if (this.#isOver) return undefined
      // If the folder is still ours, the lock is valid even after a sleep of the machine or a blocked event loop.
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

  /** Whether a folder is the one of this lock. */
  #isOurs(found: FolderState): boolean {
    if (this.note !== undefined && this.note === noteName(found)) return true
    const time = found.mtime.getTime()
    return found.ino === this.#ino && (time === this.#mtime || time === this.#nextMtime)
  }

  #compromise(error: Error): void {
    this.#compromised = error
    this.#end()
    this.#removeNote()
    // An error of the callback ends the process, as in a timer.
    process.nextTick(this.#settings.onCompromised, error)
  }

  #end(): void {
    const { folder } = this.#settings
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
