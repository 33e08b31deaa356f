import { onAbort } from '../abort-task.js'
import type { Grant } from '../index.js'
import { Child } from './child.js'
import { EXIT } from './exit-status.js'
import { printableJson } from './printable.js'
import type { Terminal } from './terminal.js'

/** How a command is run under a grant. */
export interface WorkOptions {
  /** The variable that tells it its token. */
  readonly fenceEnv: string
  /** How long it may take to end after the loss of the grant: milliseconds. */
  readonly grace: number
}

/**
 * Runs a command while the grant holds; once that is lost, it is told to end, and ended by force after the grace. Gives
 * its exit status.
 * @throws CommandError when it can't be started; LostError when the grant is lost already.
 */
export async function work(
  command: readonly string[],
  grant: Grant,
  { fenceEnv, grace }: WorkOptions,
  tell: Tell,
): Promise<number> {
  grant.assertHeld()
  const child = new Child(command, { [fenceEnv]: String(grant.token) }, grace)
  const { signal } = grant
  let lost = false
  const end = (): void => {
    lost = true
    tell('lost', { message: (signal.reason as Error).message })
    child.terminate()
  }
  if (signal.aborted) end()
  const letGo = onAbort(signal, end)
  try {
    const status = await child.ended
    tell('ended', { status })
    return lost ? EXIT.lost : status
  } finally {
    letGo()
  }
}

/** Tells what happens to a command: its own output keeps the standard output. */
export type Tell = (
  event: 'granted' | 'skipped' | 'lost' | 'ended' | 'unreleased' | 'unrecorded',
  details: Readonly<Record<string, unknown>>,
) => void

/** With `--json` all is told, in lines of JSON; else only what a person has to know. All of it on standard error. */
export function teller(stderr: Terminal['stderr'], json: boolean): Tell {
  return (event, details) => {
    if (json) stderr.write(`${printableJson({ event, ...details })}\n`)
    else if (event in AFTERMATH) {
      stderr.write(
        `signalbox: ${String(details['message'])}; ${AFTERMATH[event as keyof typeof AFTERMATH]}\n`,
      )
    }
  }
}

/** What follows from what a person is told. */
const AFTERMATH = {
  lost: 'the command is ended',
  unreleased: 'the command has run, and its locks end with their lease',
  unrecorded: 'the command has run, and may run once more for its slot',
} as const

/** What is told of something that failed once the command had run. */
export function failureOf(error: unknown, more: object = {}): Readonly<Record<string, unknown>> {
  return { message: error instanceof Error ? error.message : String(error), ...more }
}

/** What goes on around a command. */
export interface Surroundings {
  readonly tell: Tell
  /** Aborts when this process is told to end. While the command runs it is told, too. */
  readonly interrupt: AbortSignal
}
