import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { systemClock, type Timer } from '../clock.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'

/** Signals that are handed on to the command. */
const FORWARDED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']

/** A command that is run for the user: it has this process's standard streams, and its signals. */
export class Child {
  readonly #process: ChildProcess
  /**
   * Whether the command has a group of its own, so that signals reach all that it starts. At a terminal it has not: it
   * would be cut off from the keyboard, and Ctrl-Z would stop this process alone.
   */
  readonly #ownGroup: boolean
  // Looking at `process.stdin` would open it, and what is typed belongs to the command.
  readonly #atKeyboard = isatty(0)
  readonly #grace: number
  readonly #forward = (name: NodeJS.Signals): void => {
    // What the keyboard sends reaches the command without us.
    if (this.#atKeyboard && (name === 'SIGINT' || name === 'SIGQUIT')) return
    this.#send(name)
  }
  #force: Timer | undefined
  /** Settles when the command has ended, with its exit status: 128 and the number of the signal that ended it. */
  readonly ended: Promise<number>

  /**
   * Starts the command.
   * @param environment what is added to this process's own.
   * @param grace how long it may take to end once it is told to: milliseconds.
   */
  constructor(command: readonly string[], environment: Readonly<Record<string, string>>, grace: number) {
    this.#grace = grace
    this.#ownGroup = !this.#atKeyboard
    const [file = '', ...args] = command
    // Before it starts, so that there is no moment at which a signal would end this process alone.
    for (const name of FORWARDED) process.on(name, this.#forward)
    this.#process = spawn(file, args, {
      stdio: 'inherit',
      detached: this.#ownGroup,
      env: { ...process.env, ...environment },
    })
    this.ended = new Promise<number>((resolve, reject) => {
      this.#process.on('error', error => reject(cannotStart(file, error)))
      this.#process.on('exit', (status, signal) => {
        // What it has started must not outlive a loss either.
        if (this.#force && this.#ownGroup) this.#send('SIGKILL')
        resolve(status ?? EXIT.signal + constants.signals[signal ?? 'SIGKILL'])
      })
    }).finally(() => {
      for (const name of FORWARDED) process.off(name, this.#forward)
      this.#force?.cancel()
    })
  }

  /** Tells the command to end, and ends it by force when the grace is over. */
  terminate(): void {
    if (this.#force) return
    this.#send('SIGTERM')
    this.#force = systemClock.after(this.#grace, () => this.#send('SIGKILL'), true)
  }

  #send(name: NodeJS.Signals): void {
    const { pid } = this.#process
    if (pid === undefined) return
    try {
      process.kill(this.#ownGroup ? -pid : pid, name)
    } catch (error) {
      // It has ended just now.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

function cannotStart(file: string, { code, message }: NodeJS.ErrnoException): CommandError {
  return code === 'ENOENT'
    ? new CommandError(`there is no command ${file}`, EXIT.notFound)
    : new CommandError(`${file} can't be started: ${message}`, EXIT.notStarted)
}
