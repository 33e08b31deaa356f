import { createHash } from 'node:crypto'
import { existsSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'
import { systemClock, type Timer } from 'signalbox/engine'
import { folderStateSync, holderOf } from './lock-folder.js'
import { leaveNote, notesIn, readNote, removeIfEmpty, removeNote } from './notes.js'
import { isDead } from './this-process.js'

/** Interval at which the first two in a queue check whether the holder is dead, in milliseconds. */
const CHECK_INTERVAL = 20
/**
 * Time for which each process in a queue may leave a lock free before the next one tries to take it, in milliseconds.
 */
const GRACE = 200
/**
 * Interval at which a waiter tries the lock even without a noticed change, for example on a network file system, in
 * milliseconds.
 */
const TRY_INTERVAL = 1000

/** The waiting callers of this process, by the folder for which they wait. */
const groups = new Map<string, WaitingGroup>()

/** Whether others already wait for a folder, in this process or another. */
export function isAwaited(folder: string): boolean {
  return groups.has(folder) || notesIn(queueOf(folder)) !== undefined
}

/** A caller that waits for the release of a lock folder, in a queue with callers of this and other processes. */
export class WaitingCaller {
  readonly #group: WaitingGroup
  #wake: (() => void) | undefined
  /** Whether the caller was woken while it did not wait. */
  #isWoken = false

  constructor(folder: string) {
    let group = groups.get(folder)
    if (group === undefined) groups.set(folder, (group = new WaitingGroup(folder)))
    this.#group = group
    group.add(this)
  }

  /** Calls the function as soon as there is a reason to try again. */
  onWake(wake: (() => void) | undefined): void {
    this.#wake = wake
    if (!this.#isWoken || wake === undefined) return
    this.#isWoken = false
    wake()
  }

  wake(): void {
    if (this.#wake === undefined) this.#isWoken = true
    else this.#wake()
  }

  leave(): void {
    this.#group.remove(this)
  }
}

/** Waits for the time, in milliseconds, or until the caller is woken. */
export async function pause(
  time: number,
  keepAlive: boolean,
  caller: WaitingCaller | undefined,
): Promise<void> {
  let timer: Timer | undefined
  await new Promise<void>(resolve => {
    timer = systemClock.after(time, resolve, keepAlive)
    caller?.onWake(resolve)
  })
  timer?.cancel()
  caller?.onWake(undefined)
}

/**
 * The callers of this process that wait for one folder. The first of them has a place in the queue of all processes. It
 * is woken when the folder was removed or its holder is dead, and it is the first in that queue.
 */
class WaitingGroup {
  readonly #folder: string
  readonly #queue: string
  readonly #callers: WaitingCaller[] = []
  #watcher: FSWatcher | undefined
  #checkTimer: Timer | undefined
  #ticket = ''
  #place = Infinity
  /** The process that holds the lock, if it has left a note and the note was read. */
  #holder: string | undefined
  /** Clock times of the last change of the folder, and of its last examination. */
  #changedAt = 0
  #examinedAt = 0
  /** Clock time at which the folder was seen to be removed, or its holder to be dead. */
  #freeSince: number | undefined
  #lastTry = systemClock.now()

  constructor(folder: string) {
    this.#folder = folder
    this.#queue = queueOf(folder)
  }

  add(caller: WaitingCaller): void {
    if (this.#callers.push(caller) === 1) this.#begin()
  }

  remove(caller: WaitingCaller): void {
    const index = this.#callers.indexOf(caller)
    this.#callers.splice(index, 1)
    if (index > 0) return
    removeNote(this.#ticket)
    if (this.#callers.length > 0) this.#queueUp()
    else this.#end()
  }

  #begin(): void {
    try {
      const name = basename(this.#folder)
      // The callback is also called for changes of other files in the directory.
      const changed = (_: unknown, file: string | null) => {
        if (file === null || file === name) this.#change()
      }
      this.#watcher = watch(dirname(this.#folder), { persistent: false }, changed)
      this.#watcher.on('error', () => undefined)
    } catch {
      // Without a watcher, the lock is tried every TRY_INTERVAL.
    }
    this.#queueUp()
    this.#checkLater()
  }

  #end(): void {
    this.#checkTimer?.cancel()
    this.#watcher?.close()
    removeIfEmpty(this.#queue)
    groups.delete(this.#folder)
  }

  /** Joins the queue of all processes at its end. */
  #queueUp(): void {
    const time = String(process.hrtime.bigint()).padStart(20, '0')
    this.#ticket = `${this.#queue}/${time}-${process.pid}`
    leaveNote(this.#ticket)
    this.#change()
  }

  #change(): void {
    this.#changedAt = this.#examinedAt = systemClock.now()
    this.#freeSince = existsSync(this.#folder) ? undefined : this.#changedAt
    // The holder is found later: while many processes wait, most holders have left before their names are needed.
    this.#holder = undefined
    this.#place = this.#findPlace()
    if (this.#place === 0 && this.#freeSince !== undefined) this.#try()
  }

  #findHolder(now: number): void {
    this.#examinedAt = now
    const found = folderStateSync(this.#folder)
    if (found === undefined) this.#freeSince = now
    else this.#holder = holderOf(found)
  }

  #checkLater(): void {
    const look = () => {
      this.#checkLater()
      this.#check()
    }
    // Processes further back have nothing to do before those ahead of them have left.
    this.#checkTimer = systemClock.after(this.#place <= 1 ? CHECK_INTERVAL : GRACE, look, false)
  }

  #check(): void {
    const now = systemClock.now()
    this.#place = this.#findPlace()
    if (this.#freeSince === undefined) {
      // A holder leaves its note after it has created the folder, and on a busy machine later than usual. So this delay
      // doubles from one examination to the next, up to TRY_INTERVAL.
      const delay = Math.min(this.#examinedAt - this.#changedAt, TRY_INTERVAL)
      if (this.#holder === undefined && now - this.#examinedAt >= delay) this.#findHolder(now)
      if (this.#holder !== undefined && isDead(this.#holder)) this.#freeSince = now
    }
    const isTurn = this.#freeSince !== undefined && now - this.#freeSince >= this.#place * GRACE
    if (isTurn || now - this.#lastTry >= TRY_INTERVAL) this.#try()
  }

  #try(): void {
    this.#freeSince = undefined
    // By now, another process may have taken the lock of a dead holder.
    this.#holder = undefined
    this.#lastTry = systemClock.now()
    this.#callers[0]!.wake()
  }

  /** Returns the number of processes ahead of this one. The first of them is alive. */
  #findPlace(): number {
    const tickets = (notesIn(this.#queue) ?? []).map(name => `${this.#queue}/${name}`)
    // A ticket is missing if another process removed the folder of the queue just then, or a user deleted the notes.
    if (!tickets.includes(this.#ticket) && leaveNote(this.#ticket)) tickets.push(this.#ticket)
    tickets.sort()
    for (;;) {
      const [first] = tickets
      if (first === undefined || first === this.#ticket) return 0
      const waiter = readNote(first)
      if (waiter !== undefined && !isDead(waiter)) return Math.max(tickets.indexOf(this.#ticket), 0)
      removeNote(first)
      tickets.shift()
    }
  }
}

/** Returns the folder of notes about the waiters for a lock folder. */
function queueOf(folder: string): string {
  return `queue-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`
}
