import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { builtFolder } from '../../scripts/interop.mjs'
import { builtProgram } from '../support/built-program.js'
import type { Interval } from '../../apps/chaos/check/intervals.js'
import { reapLater } from '../../apps/chaos/servers/reaper.js'
import { java, python, type Program } from './programs.js'
import { runtime, type Runtime } from './runtime.js'
import type { Part } from './rounds.js'

/** A time in which a client held the lock, with the kind of the client. */
export interface Stay extends Interval {
  readonly kind: string
}

/** A kind of client. The argument after its `argv` is the JSON of its part. */
export interface Kind extends Program {
  readonly kind: string
  /** Arguments after the part. */
  readonly more?: readonly string[]
  /** Whether it is Signalbox. */
  readonly isOurs?: true
}

const ofJava = (kind: string, main: string): Kind => {
  const { program, argv } = java(main)
  return { kind, program, argv: ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto', ...argv] }
}

const node = (kind: string): Kind => ({
  kind,
  program: process.execPath,
  argv: [builtProgram(`test/interop/${kind}.process.js`)],
})

export const signalbox: Kind = { ...node('signalbox'), isOurs: true }
export const ourWriter: Kind = { ...signalbox, kind: 'writer of Signalbox', more: ['write'] }
export const ourReader: Kind = { ...signalbox, kind: 'reader of Signalbox', more: ['read'] }
/** Returns Signalbox in a runtime other than Node. */
export function signalboxOn(name: Runtime): Kind {
  const script = builtProgram('test/interop/signalbox.process.js')
  return { ...signalbox, kind: `signalbox on ${name}`, ...runtime(name, script) }
}
export const redlock = node('redlock')
export const redisSemaphore = node('redis-semaphore')
export const redisPy: Kind = { kind: 'redis-py', ...python('redis_py.py') }
export const redsync: Kind = { kind: 'redsync', program: `${builtFolder}/go/redsync`, argv: [] }
export const rLock = ofJava('RLock', 'RedissonRounds')
export const curator = ofJava('Curator', 'CuratorRounds')
export const lockfile: Kind = { ...node('lockfile'), isOurs: true }
/** Calls the lock of a file by another name. */
export const lockfileElsewhere: Kind = { ...lockfile, kind: 'lockfile elsewhere', more: ['elsewhere'] }
export const properLockfile = node('proper-lockfile')
/** Clients of the two sides of an InterProcessReadWriteLock. */
export const curatorWriter: Kind = { ...curator, kind: 'writer of Curator', more: ['write'] }
export const curatorReader: Kind = { ...curator, kind: 'reader of Curator', more: ['read'] }
export const javaMap = ofJava('IMap', 'HazelcastRounds')
export const kazoo: Kind = { kind: 'kazoo', ...python('kazoo_lock.py') }
/** Locks of kazoo with its default settings, which see only nodes with kazoo's own names. */
export const kazooAsItIs: Kind = { ...kazoo, kind: 'kazoo as it is', more: ['lock'] }
export const kazooWriter: Kind = { ...kazoo, kind: 'WriteLock of kazoo', more: ['write'] }
export const kazooReader: Kind = { ...kazoo, kind: 'ReadLock of kazoo', more: ['read'] }
export const rFairLock: Kind = { ...rLock, kind: 'RFairLock', more: ['fair'] }

/** Maximum wait for a reply, in milliseconds. */
const ANSWER_LIMIT = 60_000

let count = 0

/** A client in a process of its own. */
export class Client implements AsyncDisposable {
  readonly who: string
  /** Times in which it held the lock, in order of arrival. */
  readonly stays: Stay[] = []
  readonly #kind: Kind
  readonly #child
  readonly #exit: Promise<unknown>
  readonly #answers: string[] = []
  #waiting: ((answer: string) => void) | undefined
  #complaints = ''

  private constructor(kind: Kind, part: Part) {
    this.#kind = kind
    this.who = `${kind.kind} ${++count}`
    const argv = [...kind.argv, JSON.stringify(part), ...(kind.more ?? [])]
    const child = (this.#child = spawn(kind.program, argv, { stdio: 'pipe' }))
    reapLater(child)
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#complaints += text))
    child.stdin.on('error', () => undefined)
    this.#exit = new Promise(resolve => child.once('close', resolve))
    child.once('error', error => this.#heard(`failed ${error.message}`))
    child.once('close', status => this.#heard(`failed it ended with ${String(status)}`))
    createInterface({ input: child.stdout }).on('line', line => this.#heard(line))
  }

  /** Starts a client, and waits until it has connected. */
  static async start(kind: Kind, part: Part): Promise<Client> {
    const client = new Client(kind, part)
    await client.#answer()
    return client
  }

  /** @param wait maximum wait, in milliseconds. @returns whether it acquired the lock */
  async acquire(wait: number): Promise<boolean> {
    return (await this.#ask(`acquire ${wait}`)) === 'held'
  }

  /** @returns false if the client reports that it had lost the lock */
  async release(): Promise<boolean> {
    return (await this.#ask('release')) === 'released'
  }

  /** Begins rounds, until {@link stop}. */
  begin(): void {
    this.#child.stdin.write('rounds\n')
  }

  /** Sends a signal to the process. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async stop(): Promise<void> {
    await this.#ask('stop')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end()
    // A client may hold back its exit, so this kills it.
    this.#child.kill('SIGKILL')
    await this.#exit
  }

  async #ask(command: string): Promise<string> {
    this.#child.stdin.write(`${command}\n`)
    return this.#answer()
  }

  async #answer(): Promise<string> {
    const answer = this.#answers.shift() ?? (await this.#nextAnswer())
    if (!answer.startsWith('failed')) return answer
    throw new Error(`${this.who} ${answer}\n${this.#complaints}`)
  }

  #nextAnswer(): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.who} does not answer`)), ANSWER_LIMIT)
      this.#waiting = answer => {
        clearTimeout(timer)
        this.#waiting = undefined
        resolve(answer)
      }
    })
  }

  #heard(line: string): void {
    const [, from, to] = /^inside (\d+) (\d+)$/.exec(line) ?? []
    if (from !== undefined) {
      this.stays.push({ who: this.who, kind: this.#kind.kind, from: BigInt(from), to: BigInt(to!) })
    } else if (this.#waiting) this.#waiting(line)
    else this.#answers.push(line)
  }

  /** The reason why it can't continue; undefined if it can. */
  get failure(): string | undefined {
    return this.#answers.find(answer => answer.startsWith('failed'))
  }
}
