/**
 * An engine that keeps its state in JSON files in a folder, for all processes of a machine, and its fixture for the
 * conformance kit.
 *
 *     node json-engine.js        runs the checks of the first promise
 *     node json-engine.js P13    those of another promise
 *     node json-engine.js ''     all, in about two minutes
 */
import { randomUUID } from 'node:crypto'
import { copyFile, link, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  IndeterminateError,
  open as openBox,
  SignalboxError,
  UnavailableError,
  type Box,
  type Guarantees,
} from 'signalbox'
import { conformance, type EngineFixture } from 'signalbox-conformance'
import {
  MemoryState,
  sharedClock,
  StateEngine,
  systemClock,
  TickBatcher,
  type Clock,
  type EngineState,
  type Hint,
  type Listener,
  type SessionInfo,
} from 'signalbox/engine'

const guarantees: Guarantees = {
  engine: 'json',
  scope: 'machine',
  deadHolder: 'lease',
  durability: 'process crash',
  weaknesses: [
    {
      promise: 'P3',
      how: 'Leases use a clock that starts again with the machine, and last longer after a reboot.',
    },
    { promise: 'P13', how: 'Nothing waits for the disk, so a power failure can lose the newest commits.' },
  ],
}

/** Number of states to keep. A process that is further behind can't know whether its commit succeeded. */
const KEPT = 256

/** Work for one step, with the callbacks of its caller. */
interface Job {
  readonly work: (state: EngineState) => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Keeps the state in JSON files in a folder. Each change creates the file with the next number. `link` fails if the
 * name exists, so if two processes create the same file, one succeeds, and the other repeats its work on the new state.
 */
class JsonEngine extends StateEngine {
  readonly name: string
  readonly guarantees = guarantees
  readonly #folder: string
  readonly #state: MemoryState
  readonly #jobs = new TickBatcher<Job>(() => this.#run())
  /** The number of the newest file that this engine has loaded or created. `#saved` is its content. */
  #newest = 0
  #saved: string
  #server: Server | undefined

  constructor(folder: string, clock = sharedClock) {
    super(clock, systemClock)
    this.name = `json:${folder}`
    this.#folder = folder
    this.#state = new MemoryState(0, clock)
    this.#saved = this.#state.save()
  }

  override async join(info: SessionInfo, listener: Listener): Promise<void> {
    this.#server = createServer(socket => {
      let text = ''
      socket.on('data', data => (text += data.toString()))
      socket.on('end', () => this.receive(JSON.parse(text) as Hint))
      socket.on('error', () => undefined)
    })
    const { promise, resolve, reject } = settlers()
    this.#server.on('error', reject).listen(this.#mailbox(info.session), resolve)
    await promise
    // Lets the process exit although the box is open.
    this.#server.unref()
    await super.join(info, listener)
  }

  override async leave(): Promise<void> {
    await super.leave()
    this.#server?.close()
  }

  protected override transact<T>(work: (state: EngineState) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#jobs.add({ work, resolve: resolve as (value: unknown) => void, reject })
    })
  }

  protected override notify({ session }: SessionInfo, hint: Hint): Promise<void> {
    const { promise, resolve } = settlers()
    const socket = connect(this.#mailbox(session))
    // Ignores errors, because a session that has ended needs no hint.
    socket.on('error', () => undefined).on('close', resolve)
    socket.end(JSON.stringify(hint))
    return promise
  }

  #mailbox(session: string): string {
    return join(this.#folder, `${session}.socket`)
  }

  #file(number: number): string {
    return join(this.#folder, `${number}.json`)
  }

  /** Does all pending work in one step. Never rejects. */
  async #run(): Promise<void> {
    const jobs = this.#jobs.take()
    try {
      const results = await this.#change(jobs)
      for (const [index, { resolve }] of jobs.entries()) resolve(results[index])
    } catch (cause) {
      const error =
        cause instanceof SignalboxError
          ? cause
          : new UnavailableError(`${this.name} can't be read or written`, { engine: this.name, cause })
      for (const { reject } of jobs) reject(error)
    }
  }

  async #change(jobs: readonly Job[]): Promise<unknown[]> {
    for (;;) {
      await this.#load()
      const results = jobs.map(({ work }) => work(this.#state))
      const text = this.#state.save()
      if (text === this.#saved || (await this.#keep(text))) return results
    }
  }

  /** Loads the newest state, unless it is already loaded. */
  async #load(): Promise<void> {
    for (;;) {
      const newest = await this.#lookForNewest()
      try {
        if (newest > this.#newest) this.#saved = await readFile(this.#file(newest), 'utf8')
        this.#newest = newest
        this.#state.load(this.#saved)
        return
      } catch (error) {
        // Another process deleted the file, because it was no longer among the newest. Looks again.
        if ((error as { code?: string }).code !== 'ENOENT') throw error
      }
    }
  }

  async #lookForNewest(): Promise<number> {
    const names = await readdir(this.#folder)
    return Math.max(0, ...names.flatMap(name => /^(\d+)\.json$/.exec(name)?.[1] ?? []).map(Number))
  }

  /** Creates the next file. Returns false if another process has created it. */
  async #keep(text: string): Promise<boolean> {
    const next = this.#newest + 1
    const draft = join(this.#folder, `${randomUUID()}.draft`)
    await writeFile(draft, text)
    try {
      await link(draft, this.#file(next))
    } catch (error) {
      if ((error as { code?: string }).code === 'EEXIST') return false
      throw error
    } finally {
      await rm(draft)
    }
    if ((await this.#lookForNewest()) >= next + KEPT)
      throw new IndeterminateError(
        `the outcome of a commit to ${this.name} is unknown: ${KEPT} others followed while this process was stopped`,
        {
          engine: this.name,
        },
      )
    this.#newest = next
    this.#saved = text
    await rm(this.#file(next - KEPT), { force: true })
    return true
  }
}

function settlers() {
  let resolve!: () => void
  let reject!: (error: Error) => void
  const promise = new Promise<void>((...both) => ([resolve, reject] = both))
  return { promise, resolve, reject }
}

/** Opens a box on an existing folder: `json:/some/folder`. */
export function open(url: string): Promise<Box> {
  return openBox({ engine: new JsonEngine(url.slice('json:'.length)) })
}

/** Runs a task with a box and a function that copies the box's current state to another folder. */
async function withCopy(task: (original: Box, copy: () => Promise<string>) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'json-engine-'))
  const later = await mkdtemp(join(tmpdir(), 'json-engine-'))
  try {
    await using box = await open(`json:${folder}`)
    await task(box, async () => {
      for (const name of await readdir(folder))
        if (name.endsWith('.json')) await copyFile(join(folder, name), join(later, name))
      return later
    })
  } finally {
    await Promise.all([folder, later].map(each => rm(each, { recursive: true })))
  }
}

/** Shows that locks that a process held when the machine crashed can outlast their lease. */
function heldForTooLong(): Promise<void> {
  return withCopy(async (box, copy) => {
    await box.mutex('key').acquire({ lease: 100 })
    const folder = await copy()
    await new Promise(resolve => setTimeout(resolve, 300))
    const restarted: Clock = {
      now: () => sharedClock.now() - 3_600_000,
      after: (...timer) => systemClock.after(...timer),
    }
    await using after = await openBox({ engine: new JsonEngine(folder, restarted) })
    if (await after.mutex('key').tryAcquire()) throw new Error('the lease ended in time')
  })
}

/** Shows that a power failure can restore earlier files. */
function lostCommit(): Promise<void> {
  return withCopy(async (box, copy) => {
    await box.store('s').put('key', 'old')
    const folder = await copy()
    await box.store('s').put('key', 'new')
    await using after = await open(`json:${folder}`)
    if ((await after.store('s').get('key'))?.value !== 'old') throw new Error('the commit was kept')
  })
}

const fixture: EngineFixture = {
  name: 'json',
  guarantees,
  opener: import.meta.url,
  network: 'none',
  weaknesses: { P3: heldForTooLong, P13: lostCommit },
  async start() {
    const folder = await mkdtemp(join(tmpdir(), 'json-engine-'))
    return {
      url: `json:${folder}`,
      engine: () => new JsonEngine(folder),
      close: () => rm(folder, { recursive: true }),
    }
  },
}

// Runs the checks in the main program only, because the checks start processes that import this module.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const promise = process.argv[2] ?? 'P1 '
  for (const check of conformance(fixture)) {
    if (check.name.startsWith(promise)) void test(check.name, () => check.run())
  }
}
