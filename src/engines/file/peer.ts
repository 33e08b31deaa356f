import { lstatSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Clock, Timer } from '../../base/clock.js'
import { MAX_FRAME_SIZE } from './frame.js'

/** Maximum delay between attempts to connect to a watched peer, in milliseconds. Delays double up to it. */
const MAX_PAUSE = 1000
/**
 * How long a write may wait for a peer that doesn't read, in milliseconds. It keeps a finished process alive for that
 * time. The system's buffer for a socket holds about 270 small messages or 200 KB, so a write seldom waits at all.
 */
const MAX_WRITE = 5000

/**
 * Sends to another mailbox and watches it, over one connection. The connection is made when it is first needed. While
 * the peer is watched, it is made again when it breaks.
 */
export class Peer {
  readonly #socketPath: string
  readonly #filePath: string
  readonly #clock: Clock
  readonly #idle: () => void
  readonly #watchers = new Set<() => void>()
  #socket: Socket | undefined
  #connectedAt = 0
  /** Settles when a new connection is made, or has failed. */
  #connecting: Promise<void> | undefined
  /** Ends a connection whose peer doesn't read. */
  #writing: Timer | undefined
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
   * Sends a frame. Drops it while connections fail, or if more than 64 KB would wait with it. The promise settles when
   * the system has accepted the frame over a new connection, and so delivers it even if this process ends, or when the
   * connection has failed. Undefined when the system has accepted the frame already, or the frame waits for the peer to
   * read.
   */
  send(frame: Buffer): Promise<void> | undefined {
    const socket = this.#connected()
    if (!socket || socket.writableLength + frame.length > MAX_FRAME_SIZE) return undefined
    socket.write(frame, () => this.#wrote(socket))
    if (socket.writableLength > 0) this.#limitWrite(socket)
    return socket.connecting ? this.#connectionOf(socket) : undefined
  }

  /** Calls `dead` once when the peer is proven dead. Returns a function that stops watching. */
  watch(dead: () => void): () => void {
    // One function may watch twice, so each watch is an entry of its own.
    const watcher = () => dead()
    this.#watchers.add(watcher)
    this.#connected()
    return () => {
      if (this.#watchers.delete(watcher)) this.#dropIfIdle()
    }
  }

  /** Whether the peer is not watched and no frame waits to be sent. */
  get idle(): boolean {
    return this.#watchers.size === 0 && (this.#socket?.writableLength ?? 0) === 0
  }

  /** Closes an idle connection. Frames that were written still arrive. */
  disconnect(): void {
    const socket = this.#socket
    this.#socket = undefined
    socket?.end()
    this.#dropIfIdle()
  }

  /**
   * Waits until the system has accepted the sent frames, if the peer accepts a connection, and closes the connection.
   */
  async close(): Promise<void> {
    this.#watchers.clear()
    await this.#connecting
    this.#closed = true
    this.#pause?.cancel()
    this.#socket?.destroy()
  }

  /** Returns the connection, which may be a new one; undefined before the next attempt. */
  #connected(): Socket | undefined {
    if (!this.#socket && !this.#pause) this.#connect()
    return this.#socket
  }

  /** Keeps the process alive meanwhile. */
  #connectionOf(socket: Socket): Promise<void> {
    return (this.#connecting ??= new Promise(resolve => {
      // A connection to a unix socket succeeds or fails at once. Only its event takes a turn of the event loop.
      socket.ref()
      const over = (): void => {
        this.#connecting = undefined
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
    socket.unref().resume()
    let established = false
    let reason: string | undefined
    socket.on('connect', () => {
      established = true
      this.#connectedAt = this.#clock.now()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => (reason = error.code))
    socket.on('close', () => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      this.#writing?.cancel()
      this.#writing = undefined
      if (this.#closed) return
      if (established) this.#broke()
      else this.#failed(reason)
      this.#dropIfIdle()
    })
  }

  /** The connection has ended: the other mailbox is gone, or does not read. */
  #broke(): void {
    if (this.#clock.now() - this.#connectedAt > MAX_PAUSE) this.#failures = 0
    if (this.#watchers.size === 0) return
    if (this.#failures++ === 0) this.#connect()
    else this.#connectLater()
  }

  #failed(reason: string | undefined): void {
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

  #wrote(socket: Socket): void {
    this.#writing?.cancel()
    this.#writing = undefined
    if (this.#socket === socket && socket.writableLength > 0) this.#limitWrite(socket)
  }

  #limitWrite(socket: Socket): void {
    this.#writing ??= this.#clock.after(MAX_WRITE, () => socket.destroy(), false)
  }

  #dropIfIdle(): void {
    if (!this.idle) return
    this.#pause?.cancel()
    this.#pause = undefined
    if (!this.#socket) this.#idle()
  }
}
