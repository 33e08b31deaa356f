import { onAbort } from '../base/abort-task.js'
import type { Grant } from '../index.js'
import { Child } from './child.js'
import { EXIT } from './exit-status.js'
import { printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'
import type { WorkFlags } from './work-options.js'

/**
 * Runs a command while the grant is held. If the grant is lost, sends SIGTERM, and SIGKILL after the grace period.
 * Returns the exit status.
 * @throws CommandError if it can't be started; LostError if the grant is already lost.
 */
export async function work(
  command: readonly string[],
  grant: Grant,
  { fenceEnv, grace }: Pick<WorkFlags, 'fenceEnv' | 'grace'>,
  report: Report,
): Promise<number> {
  grant.assertHeld()
  const child = new Child(command, { [fenceEnv]: String(grant.token) }, grace)
  const { signal } = grant
  let lost = false
  const end = (): void => {
    lost = true
    report('lost', { message: (signal.reason as Error).message })
    child.terminate()
  }
  if (signal.aborted) end()
  const letGo = onAbort(signal, end)
  try {
    const status = await child.ended
    report('ended', { status })
    return lost ? EXIT.lost : status
  } finally {
    letGo()
  }
}

/** Reports the events of a command, on standard error: standard output belongs to the command. */
export type Report = (
  event: 'granted' | 'skipped' | 'lost' | 'ended' | 'unreleased' | 'unrecorded',
  details: Readonly<Record<string, unknown>>,
) => void

/** Reports every event as a line of JSON with `--json`, else only failures. */
export function reporter(stderr: Terminal['stderr'], json: boolean): Report {
  return (event, details) => {
    if (json) stderr.write(`${printableJson({ event, ...details })}\n`)
    else if (event in AFTERMATH) {
      stderr.write(
        `signalbox: ${String(details['message'])}; ${AFTERMATH[event as keyof typeof AFTERMATH]}\n`,
      )
    }
  }
}

/** The consequence of an event, for a person. */
const AFTERMATH = {
  lost: 'stopping the command',
  unreleased: 'the command has run; its locks expire with their lease',
  unrecorded: 'the command has run, and may run again for its slot',
} as const

export function failureOf(error: unknown, more: object = {}): Readonly<Record<string, unknown>> {
  return { message: error instanceof Error ? error.message : String(error), ...more }
}
