import { lstatSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Clock, Timer } from '../../base/clock.js'
import { MAX_FRAME_SIZE, STEP, unitsOf, WINDOW } from './frame.js'

/** Maximum delay between attempts to connect to a watched peer, in milliseconds. Delays double up to it. */
const MAX_PAUSE = 1000

/**
 * Sends to another mailbox and watches it, over one connection. The connection is made when it is first needed, and
 * again when it breaks.
 */
export class Peer {
  readonly #socketPath: string
  readonly #filePath: string
  readonly #clock: Clock
  readonly #idle: () => void
  readonly #watchers = new Set<() => void>()
  #socket: Socket | undefined
  /** Whether the socket accepts writes. */
  #connected = false
  #connectedAt = 0
  /** Frames that were not written yet, and their size in bytes: at most MAX_FRAME_SIZE. Further frames are dropped. */
  #queue: Buffer[] = []
  #queued = 0
  /** Settles when a new connection has accepted the queued frames, or has failed. */
  #flushing: Promise<void> | undefined
  /** Number of units written and not acknowledged. */
  #unread = 0
  /** Number of connections in a row that failed or soon broke. */
  #failures = 0
  #pause: Timer | undefined
  #closed = false

  /** @param idle is called when the peer is idle and has no connection, so that it can be dropped. */
  constructor(socketPath: string, filePath: string, clock: Clock, idle: () => void) {
    this.#socketPath = socketPath
    this.#filePath = filePath
    this.#clock = clock
    this.#idle = idle
  }

  /**
   * Sends a frame, or drops it. The promise settles when the system has accepted the frame, and so delivers it even if
   * this process ends, or when the connection has failed. Undefined when the system has accepted the frame already, or
   * the frame waits for the peer to read.
   */
  send(frame: Buffer): Promise<void> | undefined {
    if (this.#queue.length === 0 && this.#mayWrite(frame)) this.#write(frame)
    else if (this.#queued + frame.length <= MAX_FRAME_SIZE) {
      this.#queue.push(frame)
      this.#queued += frame.length
    }
    if (this.#socket === undefined && this.#pause === undefined) this.#connect()
    return this.#flushed()
  }

  /** Calls `dead` once when the peer is proven dead. Returns a function that stops watching. */
  watch(dead: () => void): () => void {
    // One function may watch twice, so each watch is an entry of its own.
    const watcher = () => dead()
    this.#watchers.add(watcher)
    if (this.#socket === undefined && this.#pause === undefined) this.#connect()
    return () => {
      if (this.#watchers.delete(watcher)) this.#dropIfIdle()
    }
  }

  /** Whether the peer is not watched and no frame waits to be sent. */
  get idle(): boolean {
    return this.#watchers.size === 0 && this.#queue.length === 0
  }

  /** Closes an idle connection. Frames that were written still arrive. */
  disconnect(): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#connected = false
    this.#unread = 0
    socket?.end()
    this.#dropIfIdle()
  }

  /**
   * Waits until the system has accepted the sent frames, if the peer accepts a connection, and closes the connection.
   */
  async close(): Promise<void> {
    this.#watchers.clear()
    await this.#flushed()
    this.#closed = true
    this.#pause?.cancel()
    this.#socket?.destroy()
  }

  /** Waits for a new connection to accept the queued frames. */
  #flushed(): Promise<void> | undefined {
    const socket = this.#socket
    if (socket?.connecting !== true || this.#queue.length === 0) return undefined
    return (this.#flushing ??= new Promise(resolve => {
      // A connection to a unix socket succeeds or fails at once. Only its event takes a turn of the event loop.
      socket.ref()
      const over = (): void => {
        this.#flushing = undefined
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
      this.#dropIfIdle()
    })
  }

  /** The connection has ended: the other mailbox is gone, or has closed this connection. */
  #broke(): void {
    if (this.#clock.now() - this.#connectedAt > MAX_PAUSE) this.#failures = 0
    // Frames that were not written are kept for one new connection, but not for another one: the peer may be dead.
    if (this.#failures > 0) this.#dropQueue()
    if (this.#watchers.size === 0 && this.#queue.length === 0) return
    if (this.#failures++ === 0) this.#connect()
    else this.#connectLater()
  }

  #failed(reason: string | undefined): void {
    this.#dropQueue()
    if (reason === 'ECONNREFUSED') {
      if (this.#isLeftBehind()) this.#reportDead()
      return
    }
    // A missing file never comes back under this name, and proves nothing: its owner may have closed, or this process
    // may see another file system. Other errors are temporary: a full backlog of a stopped owner, too few descriptors.
    if (reason !== 'ENOENT' && this.#watchers.size > 0) {
      this.#failures++
      this.#connectLater()
    }
  }

  /**
   * Whether the file exists although no process listens. An owner that closes removes its file first, so the owner of
   * such a file is dead.
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
    // The length is greater only if the system's buffers are tiny, or if a receiver acknowledges units before it reads
    // them.
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

  #dropQueue(): void {
    this.#queue = []
    this.#queued = 0
  }

  #dropIfIdle(): void {
    if (!this.idle) return
    this.#pause?.cancel()
    this.#pause = undefined
    if (this.#socket === undefined) this.#idle()
  }
}
