import { createHash } from 'node:crypto'
import { existsSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'
import { systemClock, type Timer } from 'signalbox/engine'
import { holderOf, lookSync } from './lock-folder.js'
import { leaveNote, notesIn, readNote, removeIfEmpty, removeNote } from './notes.js'
import { isDead } from './this-process.js'

/** How often the first two in a queue look whether the holder is dead, in milliseconds. */
const LOOK = 20
/** How long each in a queue may leave a lock free before the next one tries to take it, in milliseconds. */
const GRACE = 200
/** How often a lock is tried although nothing was noticed, such as on a network file system, in milliseconds. */
const TRY = 1000

/** The waiting callers of this process by the folders that they wait for. */
const crowds = new Map<string, Crowd>()

/** Whether others wait already for a folder, in this process or another. */
export function isAwaited(folder: string): boolean {
  return crowds.has(folder) || notesIn(queueOf(folder)) !== undefined
}

/** One caller that waits for the release of a lock folder, in a queue with those of this and other processes. */
export class WaitingCaller {
  readonly #crowd: Crowd
  #wake: (() => void) | undefined
  /** Whether it was woken while it did not wait. */
  #isWoken = false

  constructor(folder: string) {
    let crowd = crowds.get(folder)
    if (crowd === undefined) crowds.set(folder, (crowd = new Crowd(folder)))
    this.#crowd = crowd
    crowd.add(this)
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
    this.#crowd.remove(this)
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
 * The callers of this process that wait for one folder. The first of them is in the queue of all processes, and is
 * woken when it is the first there, and the folder was removed or its holder is dead.
 */
class Crowd {
  readonly #folder: string
  readonly #queue: string
  readonly #callers: WaitingCaller[] = []
  #watcher: FSWatcher | undefined
  #looking: Timer | undefined
  #ticket = ''
  #place = Infinity
  /** The process that holds the lock, if it has left a note. */
  #holder: string | undefined
  /** When the folder changed, and when it was last examined. */
  #changedAt = 0
  #seenAt = 0
  /** When the folder was seen to be removed, or its holder to be dead. */
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
      // The callback comes for what happens to other files of the directory, too.
      const changed = (_: unknown, file: string | null) => {
        if (file === null || file === name) this.#change()
      }
      this.#watcher = watch(dirname(this.#folder), { persistent: false }, changed)
      this.#watcher.on('error', () => undefined)
    } catch {
      // It is tried now and then.
    }
    this.#queueUp()
    this.#lookLater()
  }

  #end(): void {
    this.#looking?.cancel()
    this.#watcher?.close()
    removeIfEmpty(this.#queue)
    crowds.delete(this.#folder)
  }

  /** Joins the queue of all processes at its end. */
  #queueUp(): void {
    const time = String(process.hrtime.bigint()).padStart(20, '0')
    this.#ticket = `${this.#queue}/${time}-${process.pid}`
    leaveNote(this.#ticket)
    this.#change()
  }

  #change(): void {
    this.#changedAt = this.#seenAt = systemClock.now()
    this.#freeSince = existsSync(this.#folder) ? undefined : this.#changedAt
    // Found later, because while many processes wait, most holders have gone before anybody needs to know them.
    this.#holder = undefined
    this.#place = this.#findPlace()
    if (this.#place === 0 && this.#freeSince !== undefined) this.#try()
  }

  /** Finds the holder. */
  #see(now: number): void {
    this.#seenAt = now
    const found = lookSync(this.#folder)
    if (found === undefined) this.#freeSince = now
    else this.#holder = holderOf(found)
  }

  #lookLater(): void {
    const look = () => {
      this.#lookLater()
      this.#look()
    }
    // Those far behind have nothing to notice before those ahead of them have gone.
    this.#looking = systemClock.after(this.#place <= 1 ? LOOK : GRACE, look, false)
  }

  #look(): void {
    const now = systemClock.now()
    this.#place = this.#findPlace()
    if (this.#freeSince === undefined) {
      // A holder leaves its note after it has made the folder, and on a busy machine later than usual.
      const pause = Math.min(this.#seenAt - this.#changedAt, TRY)
      if (this.#holder === undefined && now - this.#seenAt >= pause) this.#see(now)
      if (this.#holder !== undefined && isDead(this.#holder)) this.#freeSince = now
    }
    const isTurn = this.#freeSince !== undefined && now - this.#freeSince >= this.#place * GRACE
    if (isTurn || now - this.#lastTry >= TRY) this.#try()
  }

  #try(): void {
    this.#freeSince = undefined
    // By now, another process may have taken the lock of a dead holder.
    this.#holder = undefined
    this.#lastTry = systemClock.now()
    this.#callers[0]!.wake()
  }

  /** The number of processes ahead of this one. The first of them is alive. */
  #findPlace(): number {
    const tickets = (notesIn(this.#queue) ?? []).map(name => `${this.#queue}/${name}`)
    // A ticket is missing if another process removed the folder of the queue just then, or a user deleted the notes.
    if (!tickets.includes(this.#ticket) && leaveNote(this.#ticket)) tickets.push(this.#ticket)
    tickets.sort()
    for (;;) {
      const [first] = tickets
      if (first === undefined || first === this.#ticket) return 0
      const process = readNote(first)
      if (process !== undefined && !isDead(process)) return Math.max(tickets.indexOf(this.#ticket), 0)
      removeNote(first)
      tickets.shift()
    }
  }
}

/** The folder of notes about those that wait for a lock folder. */
function queueOf(folder: string): string {
  return `queue-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`
}
