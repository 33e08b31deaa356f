import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { lstatSync, renameSync, unlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '../../base/clock.js'
import { UnavailableError } from '../../base/errors.js'
import { FileAccess } from './file-access.js'
import { FrameReader, toFrame } from './frame.js'
import { Peer } from './peer.js'
import { ownerOf } from './presence.js'
import { SocketFolder } from './socket-folder.js'

/** Number of connections above which idle ones are closed. */
const MAX_KEPT = 8

/** The file names of sockets in the folder. Any other text is not an address. */
const ADDRESS = /^[0-9a-f]{24}\.box$/
/** The file names of sockets, including those that do not listen yet. */
const SOCKET = /^[0-9a-f]{24}\.(box|new)$/
/** Age from which a socket file without a listener is an orphan, in milliseconds. A younger one may get a listener. */
const OLD = 60_000

/**
 * Sends messages between the threads that use one folder, in one process or several. Each thread listens on a unix
 * socket in the folder. Messages are hints and may be lost. A mailbox does not keep its process alive.
 */
export class Mailbox {
  /** The socket's file name in the folder, to which others send. No other mailbox has ever had it. */
  readonly address: string
  readonly #folder: SocketFolder
  readonly #server: Server
  readonly #receive: (message: string) => void
  readonly #clock: Clock
  readonly #senders = new Set<Socket>()
  readonly #peers = new Map<string, Peer>()
  #closing: Promise<void> | undefined

  private constructor(
    address: string,
    folder: SocketFolder,
    receive: (message: string) => void,
    clock: Clock,
  ) {
    this.address = address
    this.#folder = folder
    this.#receive = receive
    this.#clock = clock
    this.#server = createServer(socket => this.#accept(socket))
    // If a connection can't be accepted, its messages are lost.
    this.#server.on('error', () => {})
  }

  /**
   * Listens on a socket in an existing folder. The socket has the same permissions as other files of the folder.
   * @param receive is called with each message of others. It must not throw.
   * @param clock measures the delays between attempts to connect to a watched mailbox.
   * @throws UnavailableError (the promise is rejected) when the socket can't be created; its cause says why.
   */
  static async open(folder: string, receive: (message: string) => void, clock: Clock): Promise<Mailbox> {
    const sockets = SocketFolder.open(folder)
    const name = randomBytes(12).toString('hex')
    const mailbox = new Mailbox(`${name}.box`, sockets, receive, clock)
    try {
      await mailbox.#listen(`${name}.new`)
    } catch (cause) {
      mailbox.#server.close()
      sockets.close()
      throw new UnavailableError(`could not create a socket in ${sockets.path}; see the cause`, { cause })
    }
    return mailbox
  }

  /**
   * Sends a short message, at most once. Messages to one address arrive in order. A message is lost when the address
   * has no mailbox, when 64 KB already wait for a receiver that doesn't read, or when the message is longer than that.
   * @returns see {@link Peer.send}
   */
  send(address: string, message: string): Promise<void> | undefined {
    const frame = toFrame(message)
    return frame === undefined ? undefined : this.#peer(address)?.send(frame)
  }

  /**
   * Calls `dead` once when the process or thread behind the address is proven dead: the connection to it has ended, and
   * a new one is refused. A stopped process is not dead. A mailbox that has called `close` is not reported. On systems
   * other than Linux, a refused connection proves nothing, so no death is ever reported there.
   * @returns a function that stops watching.
   */
  watch(address: string, dead: () => void): () => void {
    const peer = process.platform === 'linux' ? this.#peer(address) : undefined
    if (peer === undefined) return () => {}
    const stop = peer.watch(dead)
    return () => {
      stop()
      this.#disconnectAbove(MAX_KEPT)
    }
  }

  /**
   * Whether the process or thread behind the address is proven dead, as for {@link watch}. Does not keep a connection.
   * Never rejects.
   */
  async isDead(address: string): Promise<boolean> {
    if (this.#closing !== undefined || !ADDRESS.test(address)) return false
    return (await ownerOf(this.#folder.socketPath(address))) === 'dead'
  }

  /** Removes the socket file of a mailbox that is known to be dead. From then on its death can't be proven. */
  remove(address: string): void {
    if (ADDRESS.test(address)) this.#unlink(address)
  }

  /**
   * Removes the old socket files of processes that died before others knew their address, or after they had left. Never
   * rejects.
   * @param known the addresses of all others
   */
  async removeOrphans(known: readonly string[]): Promise<void> {
    const names = await readdir(this.#folder.path).catch(() => [])
    for (const name of names) {
      if (!SOCKET.test(name) || known.includes(name) || !this.#isOld(name)) continue
      if (this.#closing !== undefined) return
      if ((await ownerOf(this.#folder.socketPath(name))) === 'dead') this.#unlink(name)
    }
  }

  /**
   * Removes the socket file, waits until the system has accepted sent messages, and closes all connections. Further
   * calls do nothing.
   * @param keepsFile leaves the file, as after the death of a process, so that others find this mailbox dead.
   */
  close(keepsFile = false): Promise<void> {
    return (this.#closing ??= this.#close(keepsFile))
  }

  async #close(keepsFile: boolean): Promise<void> {
    // The file is removed first: a box that finds it and is refused would consider this mailbox dead.
    if (!keepsFile) this.#unlink(this.address)
    const stopped = new Promise(resolve => this.#server.close(resolve))
    for (const socket of this.#senders) socket.destroy()
    await Promise.all([...this.#peers.values()].map(peer => peer.close()))
    await stopped
    this.#folder.close()
  }

  async #listen(temporary: string): Promise<void> {
    // Otherwise the primary process of a cluster would listen instead of this one.
    this.#server.listen({ path: this.#folder.socketPath(temporary), exclusive: true })
    await once(this.#server, 'listening')
    this.#server.unref()
    const file = this.#folder.filePath(temporary)
    // Only users who may use the database may connect.
    new FileAccess(this.#folder.path).limit(file)
    // When a thread or process ends without closing, Node removes the file by the name to which it was bound. Under
    // another name, the file stays, and proves that no process listens any more.
    renameSync(file, this.#folder.filePath(this.address))
  }

  #accept(socket: Socket): void {
    socket.unref()
    this.#senders.add(socket)
    const reader = new FrameReader()
    const receive = (message: string): void => {
      if (this.#closing === undefined) this.#receive(message)
    }
    socket.on('data', (chunk: Buffer) => {
      if (!reader.push(chunk, receive)) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => this.#senders.delete(socket))
  }

  #peer(address: string): Peer | undefined {
    if (this.#closing !== undefined || !ADDRESS.test(address)) return undefined
    let peer = this.#peers.get(address)
    // Keeps the peers in the order of their last use.
    this.#peers.delete(address)
    if (peer === undefined) {
      this.#disconnectAbove(MAX_KEPT - 1)
      const [socketPath, filePath] = [this.#folder.socketPath(address), this.#folder.filePath(address)]
      peer = new Peer(socketPath, filePath, this.#clock, () => this.#peers.delete(address))
    }
    this.#peers.set(address, peer)
    return peer
  }

  /** Closes idle connections above this number, the least recently used first. */
  #disconnectAbove(max: number): void {
    for (const peer of this.#peers.values()) {
      if (this.#peers.size <= max) return
      if (peer.idle) peer.disconnect()
    }
  }

  #isOld(name: string): boolean {
    try {
      const file = lstatSync(this.#folder.filePath(name))
      return file.isSocket() && Date.now() - file.mtimeMs > OLD
    } catch {
      // The file is gone, or the disk fails.
      return false
    }
  }

  #unlink(address: string): void {
    try {
      unlinkSync(this.#folder.filePath(address))
    } catch {
      // The file is gone, or may not be removed. Both are harmless.
    }
  }
}
