import { fork, type ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../../src/base/clock.js'
import type { Answer, Call, Verbs } from './box.process.js'
import { builtProgram } from '../built-program.js'

type Result<V extends keyof Verbs> = Awaited<ReturnType<Verbs[V]>>

/** An error of the other process. */
class RemoteError extends Error {
  readonly code: unknown

  constructor({ name, code, message }: NonNullable<Answer['error']>) {
    super(message)
    this.name = name
    this.code = code
  }
}

/** Options of a process. */
export interface Start {
  /** A command with its arguments that runs another one: `nsenter ...`. */
  readonly enter?: readonly string[]
  /** The ID of the user that opens the box. Only root may choose. */
  readonly user?: number | undefined
  /** Its working directory. */
  readonly cwd?: string
  /** The program of another version of Node. */
  readonly node?: string
  /** Environment variables, in addition to those of this process. */
  readonly environment?: Readonly<Record<string, string>>
}

/** A box in a process, or in a thread, of its own. */
export class RemoteBox {
  /** The session id of its box. */
  session = ''
  readonly #program: ChildProcess | Worker
  readonly #calls = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  #last = 0
  readonly #ended: Promise<void>
  #onInside: (() => void) | undefined

  private constructor(program: ChildProcess | Worker) {
    this.#program = program
    this.#ended = new Promise(resolve => {
      program.once('exit', () => {
        for (const { reject } of this.#calls.values()) reject(new Error('the process has ended'))
        this.#calls.clear()
        resolve()
      })
    })
    program.on('message', (message: Answer | { inside: true }) => this.#receive(message))
  }

  /** Starts a process and opens a box in it. */
  static async inProcess(
    url: string,
    { enter = [], user, cwd, node = process.execPath, environment }: Start = {},
  ): Promise<RemoteBox> {
    const [execPath, ...execArgv] = [...enter, node]
    const child = fork(builtProgram('test/support/file/box.process.js'), [], {
      serialization: 'advanced',
      execPath,
      execArgv,
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...process.env, ...environment },
      stdio: ['ignore', 2, 2, 'ipc'],
    })
    const box = new RemoteBox(child)
    if (user !== undefined) await box.call('become', user)
    return RemoteBox.#opened(box, url)
  }

  /** Starts a worker of this process, which is the primary of its cluster, and opens a box in it. */
  static async inCluster(url: string): Promise<RemoteBox> {
    cluster.setupPrimary({
      exec: builtProgram('test/support/file/box.process.js'),
      serialization: 'advanced',
    })
    const { process: worker } = cluster.fork()
    // Until its program listens, a worker of a cluster loses its messages.
    await once(worker, 'message')
    return RemoteBox.#opened(new RemoteBox(worker), url)
  }

  /** Starts a worker thread of this process and opens a box in it. */
  static async inThread(url: string): Promise<RemoteBox> {
    return RemoteBox.#opened(new RemoteBox(new Worker(builtProgram('test/support/file/box.process.js'))), url)
  }

  static async #opened(box: RemoteBox, url: string): Promise<RemoteBox> {
    try {
      box.session = await box.call('open', url)
      return box
    } catch (error) {
      await box.kill()
      throw error
    }
  }

  call<V extends keyof Verbs>(verb: V, ...args: Parameters<Verbs[V]>): Promise<Result<V>> {
    const id = ++this.#last
    const call: Call = { id, verb, args }
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject })
      if (this.#program instanceof Worker) this.#program.postMessage(call)
      else this.#program.send(call)
    })
  }

  /** Acquires a mutex over these keys. */
  mutex(name: string, keys: readonly string[], options?: Parameters<Verbs['acquire']>[2]) {
    const claims = keys.map(key => ({ key, mode: 'exclusive' as const }))
    return this.call('acquire', name, claims, options)
  }

  /** Releases a grant. Returns the clock time before the release. */
  release(name: string): Promise<number> {
    return this.call('release', name)
  }

  /** Resolves when the function of `transactionOver` runs. */
  inside(): Promise<void> {
    return new Promise(resolve => (this.#onInside = resolve))
  }

  /** Kills it. @returns the clock time before the kill. */
  async kill(): Promise<number> {
    const at = systemClock.now()
    // A thread exits by itself, because libsql aborts the process when one is terminated in the middle of a statement.
    if (this.#program instanceof Worker) this.call('end').catch(() => undefined)
    else this.#program.kill('SIGKILL')
    await this.#ended
    return at
  }

  /** Terminates the thread, which must be idle. @returns the clock time before */
  async terminate(): Promise<number> {
    if (!(this.#program instanceof Worker)) throw new Error('a process is killed')
    const at = systemClock.now()
    await this.#program.terminate()
    await this.#ended
    return at
  }

  /** Stops the process. */
  freeze(): void {
    this.#child.kill('SIGSTOP')
  }

  /** Lets a stopped process continue. */
  thaw(): void {
    this.#child.kill('SIGCONT')
  }

  /** Resolves when it has ended by itself. */
  get ended(): Promise<void> {
    return this.#ended
  }

  get #child(): ChildProcess {
    if (this.#program instanceof Worker) throw new Error('a thread has no process of its own')
    return this.#program
  }

  #receive(message: Answer | { inside: true }): void {
    if ('inside' in message) return this.#onInside?.()
    const call = this.#calls.get(message.id)
    this.#calls.delete(message.id)
    if (message.error) call?.reject(new RemoteError(message.error))
    else call?.resolve(message.result)
  }
}
