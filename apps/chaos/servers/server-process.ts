import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { reapLater } from './reaper.js'

/** The command that starts a server. */
export interface ServerCommand {
  readonly program: string
  readonly argv: readonly string[]
  readonly folder: string
  /** The user of the server; default: that of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
  /** Variables in addition to the environment of this process. */
  readonly environment?: Readonly<Record<string, string>>
  /** Files that the constructor writes into the folder, by name. */
  readonly files: Readonly<Record<string, string | Uint8Array>>
  /** The package to install if the program is missing. */
  readonly debianPackage: string
}

const START_LIMIT = 120_000
const STOP_LIMIT = 10_000

/** A server as a child process. It is ended by its own id, at the latest together with this process. */
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

  /** Writes a script that starts the server in the foreground. Returns its command line. */
  writeScript(): string {
    const { program, argv, folder, user } = this.#command
    const as = user ? ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'] : []
    const words = [...as, program, ...argv].map(word => `'${word.replaceAll("'", `'\\''`)}'`)
    const script = join(folder, 'start.sh')
    writeFileSync(script, `cd "$(dirname "$0")" && exec ${words.join(' ')}\n`)
    return `sh ${script}`
  }

  /** Id of the running process, or of the last one that ran. */
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
   * Starts the server, or restarts it with its data on disk, and waits until it answers.
   * @throws Error with its output if it is missing, ends at once, or does not answer within 2 minutes
   */
  async start(): Promise<void> {
    if (this.isRunning) throw new Error(`${this.#command.program} runs already`)
    const { program, argv, folder, environment, debianPackage, user } = this.#command
    this.#printed = ''
    // Its own process group. An interrupt at the terminal ends the tests, and the tests then end their servers.
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

  /** Resolves as soon as the server answers. If it rejects, it is called again. */
  protected abstract answers(): Promise<unknown>

  async #untilAnswering(): Promise<void> {
    const deadline = performance.now() + START_LIMIT
    while (true) {
      try {
        await this.answers()
        // Another server may use its port and have answered.
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

  /** Stops the server with SIGTERM, and with SIGKILL after 10 s. */
  async stop(): Promise<void> {
    this.resume()
    await this.#end('SIGTERM')
  }

  /** Stops the server at once with SIGKILL, as a crash would. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }

  /** Kills the server and starts it again with its data on disk. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** Freezes the server with SIGSTOP. Connections stay open, but it answers nothing until {@link resume}. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP')
    // On a busy machine, some of its threads may run for another moment, and answer the next request.
    while (!isStopped(this.pid));
  }

  /** Continues the server after {@link pause}. */
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

/** Whether all threads of a process are stopped or have ended. True if the system does not show it. */
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
