import { lstatSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Clock, Timer } from '../../base/clock.js'
import { MAX_FRAME_SIZE, STEP, unitsOf, WINDOW } from './frame.js'

/** The pauses between attempts to reach one that is watched double up to this, milliseconds. */
const MAX_PAUSE = 1000

/**
 * Another mailbox, as one that sends to it and watches it sees it: one connection, made when it is first needed and
 * again when it breaks.
 */
export class Peer {
  readonly #socketPath: string
  readonly #filePath: string
  readonly #clock: Clock
  readonly #idle: () => void
  readonly #watchers = new Set<() => void>()
  #socket: Socket | undefined
  /** Whether the socket takes writes. */
  #connected = false
  #connectedAt = 0
  /** Frames that no connection has taken on, and their bytes: at most MAX_FRAME_SIZE, what is more is lost. */
  #queue: Buffer[] = []
  #queued = 0
  /** Settles when the connection that is being made has taken what is queued, or failed. */
  #handingOver: Promise<void> | undefined
  /** Units written and not yet known to be read. */
  #unread = 0
  /** Connections in a row that failed or broke soon. */
  #failures = 0
  #pause: Timer | undefined
  #closed = false

  /** @param idle is called when nothing is left to do for this peer, so that it can be forgotten. */
  constructor(socketPath: string, filePath: string, clock: Clock, idle: () => void) {
    this.#socketPath = socketPath
    this.#filePath = filePath
    this.#clock = clock
    this.#idle = idle
  }

  /**
   * Sends a frame, or loses it. The promise settles when it was handed to the system, which then delivers it also if
   * this process ends; undefined when it was already, or will wait for the peer to read.
   */
  send(frame: Buffer): Promise<void> | undefined {
    if (this.#queue.length === 0 && this.#mayWrite(frame)) this.#write(frame)
    else if (this.#queued + frame.length <= MAX_FRAME_SIZE) {
      this.#queue.push(frame)
      this.#queued += frame.length
    }
    if (this.#socket === undefined && this.#pause === undefined) this.#connect()
    return this.#handOver()
  }

  /** Calls `dead` once when it is proven dead; returns a function that stops watching. */
  watch(dead: () => void): () => void {
    // One function may watch twice, so each watch is an entry of its own.
    const watcher = () => dead()
    this.#watchers.add(watcher)
    if (this.#socket === undefined && this.#pause === undefined) this.#connect()
    return () => {
      if (this.#watchers.delete(watcher)) this.#restIfIdle()
    }
  }

  /** Whether no peer is watched and nothing waits to be sent. */
  get idle(): boolean {
    return this.#watchers.size === 0 && this.#queue.length === 0
  }

  /** Gives up an idle connection. What it has taken still arrives. */
  rest(): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#connected = false
    this.#unread = 0
    socket?.end()
    this.#restIfIdle()
  }

  /**
   * Resolves when what was sent has been handed to the system, if the peer takes it, and then gives up the connection.
   */
  async close(): Promise<void> {
    this.#watchers.clear()
    await this.#handOver()
    this.#closed = true
    this.#pause?.cancel()
    this.#socket?.destroy()
  }

  /** Waits for the connection that takes what is queued. */
  #handOver(): Promise<void> | undefined {
    const socket = this.#socket
    if (socket?.connecting !== true || this.#queue.length === 0) return undefined
    return (this.#handingOver ??= new Promise(resolve => {
      // Connecting to a unix socket succeeds or fails at once; only word of it takes a turn of the event loop.
      socket.ref()
      const over = (): void => {
        this.#handingOver = undefined
        socket.off('connect', over).off('close', over).unref()
        resolve()
      }
      socket.on('connect', over).on('close', over)
    }))
  }

  #connect(): void {
    this.#pause?.cancel()
    this.#pause = undefined
    const socket = connect({ path: this.#socketPath })
    this.#socket = socket
    socket.unref()
    let established = false
    let reason: string | undefined
    socket.on('connect', () => {
      established = true
      if (this.#socket !== socket) return
      this.#connected = true
      this.#connectedAt = this.#clock.now()
      this.#flush()
    })
    socket.on('data', chunk => {
      if (this.#socket !== socket) return
      this.#unread = Math.max(0, this.#unread - chunk.length * STEP)
      this.#flush()
    })
    socket.on('end', () => {
      if (this.#socket === socket) this.#connected = false
    })
    socket.on('error', (error: NodeJS.ErrnoException) => (reason = error.code))
    socket.on('close', () => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      this.#connected = false
      this.#unread = 0
      if (this.#closed) return
      if (established) this.#broke()
      else this.#failed(reason)
      this.#restIfIdle()
    })
  }

  /** The connection ended: the other mailbox is gone, or gave up this one connection. */
  #broke(): void {
    if (this.#clock.now() - this.#connectedAt > MAX_PAUSE) this.#failures = 0
    // What was never written is sent over a new connection, but only over one: its owner may be dead.
    if (this.#failures > 0) this.#lose()
    if (this.#watchers.size === 0 && this.#queue.length === 0) return
    if (this.#failures++ === 0) this.#connect()
    else this.#connectLater()
  }

  #failed(reason: string | undefined): void {
    this.#lose()
    if (reason === 'ECONNREFUSED') {
      if (this.#isLeftBehind()) this.#reportDead()
      return
    }
    // A file that is gone never comes back under this name, and proves nothing: its owner may have closed, or this
    // process may see another file system. Anything else passes: a stopped owner's full backlog, missing descriptors.
    if (reason !== 'ENOENT' && this.#watchers.size > 0) {
      this.#failures++
      this.#connectLater()
    }
  }

  /**
   * No process listens. An owner that closes removes its file first, so a file that is still there has a dead owner.
   */
  #isLeftBehind(): boolean {
    try {
      return lstatSync(this.#filePath).isSocket()
    } catch {
      return false
    }
  }

  #reportDead(): void {
    const watchers = [...this.#watchers]
    this.#watchers.clear()
    for (const dead of watchers) dead()
  }

  #connectLater(): void {
    const pause = Math.min(MAX_PAUSE, 2 ** this.#failures)
    this.#pause = this.#clock.after(pause, () => this.#connect(), false)
  }

  #mayWrite(frame: Buffer): boolean {
    if (!this.#connected || this.#unread + unitsOf(frame.length) > WINDOW) return false
    // Only where the system's buffers are tiny, or a receiver says that it has read what it has not.
    return this.#socket!.writableLength <= MAX_FRAME_SIZE
  }

  #flush(): void {
    let next = 0
    while (next < this.#queue.length && this.#mayWrite(this.#queue[next]!)) {
      const frame = this.#queue[next++]!
      this.#queued -= frame.length
      this.#write(frame)
    }
    if (next > 0) this.#queue = this.#queue.slice(next)
  }

  #write(frame: Buffer): void {
    this.#unread += unitsOf(frame.length)
    this.#socket!.write(frame)
  }

  #lose(): void {
    this.#queue = []
    this.#queued = 0
  }

  #restIfIdle(): void {
    if (!this.idle) return
    this.#pause?.cancel()
    this.#pause = undefined
    if (this.#socket === undefined) this.#idle()
  }
}
