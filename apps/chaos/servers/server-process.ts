import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { reapLater } from './reaper.js'

/** What a server is started with. */
export interface ServerCommand {
  readonly program: string
  readonly argv: readonly string[]
  readonly folder: string
  /** As whom it runs; default: as this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
  /** Added to the environment of this process. */
  readonly environment?: Readonly<Record<string, string>>
  /** Written into the folder when the server is made, by name. */
  readonly files: Readonly<Record<string, string | Uint8Array>>
  /** What to install when the program is missing. */
  readonly debianPackage: string
}

const START_LIMIT = 120_000
const STOP_LIMIT = 10_000

/** A server as a child process, ended by its own id, at the latest together with this process. */
export abstract class ServerProcess {
  readonly #command: ServerCommand
  #child: ChildProcess | undefined
  #printed = ''

  constructor(command: ServerCommand) {
    this.#command = command
    for (const [name, content] of Object.entries(command.files)) {
      const path = join(command.folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
    }
  }

  /** Writes a script that starts it in the foreground, and gives its command line. */
  writeScript(): string {
    const { program, argv, folder, user } = this.#command
    const as = user ? ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'] : []
    const words = [...as, program, ...argv].map(word => `'${word.replaceAll("'", `'\\''`)}'`)
    const script = join(folder, 'start.sh')
    writeFileSync(script, `cd "$(dirname "$0")" && exec ${words.join(' ')}\n`)
    return `sh ${script}`
  }

  /** Of the process that runs, or of the last one that ran. */
  get pid(): number {
    const pid = this.#child?.pid
    if (pid === undefined) throw new Error(`${this.#command.program} was not started`)
    return pid
  }

  get isRunning(): boolean {
    const child = this.#child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  /**
   * Starts the server (again, with what it had on disk) and waits until it answers.
   * @throws Error with what it printed, when it is missing, ends at once, or does not answer in 2 minutes
   */
  async start(): Promise<void> {
    if (this.isRunning) throw new Error(`${this.#command.program} runs already`)
    const { program, argv, folder, environment, debianPackage, user } = this.#command
    this.#printed = ''
    // A group of its own: an interrupt at the terminal ends the tests, and these then end their servers.
    const child = spawn(program, argv, {
      cwd: folder,
      detached: true,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...user,
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error: NodeJS.ErrnoException) => {
        const missing = `${program} is not installed; as root: apt-get install ${debianPackage}`
        reject(error.code === 'ENOENT' ? new Error(missing) : error)
      })
    })
    this.#child = child
    reapLater(child)
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#printed = (this.#printed + text).slice(-10_000)
      })
      ;(stream as typeof stream & { unref(): void }).unref()
    }
    child.unref()
    await this.#untilAnswering()
  }

  /** Settles as soon as the server serves; rejects to be asked again. */
  protected abstract answers(): Promise<unknown>

  async #untilAnswering(): Promise<void> {
    const deadline = performance.now() + START_LIMIT
    while (true) {
      try {
        await this.answers()
        // Its port may belong to another server, which answers in its stead.
        if (this.isRunning) return
        throw new Error('it was another server that answered')
      } catch (error) {
        if (!this.isRunning)
          throw new Error(`${this.#command.program} ended:\n${this.#printed}`, { cause: error })
        if (performance.now() > deadline) {
          await this.kill()
          throw new Error(`${this.#command.program} does not answer:\n${this.#printed}`, { cause: error })
        }
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    }
  }

  /** Ends it in order (SIGTERM), by force after 10 s. */
  async stop(): Promise<void> {
    this.resume()
    await this.#end('SIGTERM')
  }

  /** Ends it at once (SIGKILL), as a crash would. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }

  /** Kills it and starts it again, with what it had written. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** Freezes it (SIGSTOP): connections stay open and nothing is answered, until {@link resume}. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP')
    // On a busy machine, some of its threads may go on for a moment, and answer what is sent next.
    while (!isStopped(this.pid));
  }

  /** Lets it continue after {@link pause}. */
  resume(): void {
    if (this.isRunning) process.kill(this.pid, 'SIGCONT')
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === undefined || !this.isRunning) return
    child.ref()
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill(signal)
    const force = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT)
    await ended
    clearTimeout(force)
  }
}

/** Whether no thread of a process runs any more. True where the system does not tell. */
function isStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`
  if (!existsSync(threads)) return true
  try {
    return readdirSync(threads).every(thread => {
      const status = readFileSync(`${threads}/${thread}/status`, 'latin1')
      return /^State:\s+[TtZX]/m.test(status)
    })
  } catch {
    // A thread has just ended.
    return false
  }
}
