import type { Command } from 'commander'
import type { Box } from '../index.js'
import { IndeterminateError, LostError, UnavailableError } from '../errors.js'
import { withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { complaint, EndedWith } from './failure.js'
import { Interrupt } from './interrupt.js'
import { pause } from './pause.js'
import type { Terminal } from './terminal.js'
import { teller, work, type Surroundings } from './work.js'
import { addWorkOptions, labelOf, refuseCommandAsName, type WorkFlags } from './work-options.js'

/** Before it stands again: milliseconds. A command that ends at once must not be started without end. */
const PAUSE = 1000

/** Adds `signalbox lead`. */
export function addLead(program: Command, { stderr }: Terminal): void {
  const lead = program
    .command('lead')
    .description(
      'keep one copy of a command running in a fleet: start it wherever this is run, and one leads',
    )
    .usage('NAME [options] -- COMMAND...')
    .argument('<name>', 'the name of the election')
    .argument('<command...>', 'the command and its arguments')
  addWorkOptions(lead).action(async (name: string, command: readonly string[], options: WorkFlags) => {
    refuseCommandAsName(lead, command)
    const tell = teller(stderr, options.json === true)
    using interrupt = new Interrupt()
    const { signal } = interrupt
    const status = await withBox(
      options.engine,
      async box => {
        for (;;) {
          const ended = await term(box, name, command, options, { tell, interrupt: signal }).catch(
            (error: unknown) => {
              signal.throwIfAborted()
              if (!canPass(error)) throw error
              stderr.write(complaint(error))
              return undefined
            },
          )
          if (ended !== undefined && signal.aborted) return ended
          await pause(PAUSE, signal)
          signal.throwIfAborted()
        }
      },
      { makes: true, label: labelOf(command) },
    )
    if (status !== EXIT.fine) throw new EndedWith(status)
  })
}

/** Leads once: runs the command until it ends or the lead is lost, and gives its status. */
async function term(
  box: Box,
  name: string,
  command: readonly string[],
  { lease, fenceEnv, grace }: WorkFlags,
  { tell, interrupt }: Surroundings,
): Promise<number> {
  try {
    return await box.election(name).lead(
      grant => {
        interrupt.throwIfAborted()
        tell('granted', { name, token: String(grant.token) })
        return work(command, grant, { fenceEnv, grace }, tell)
      },
      { lease, signal: interrupt },
    )
  } catch (error) {
    // A loss has been told, and the command has ended.
    if (error instanceof LostError && error.taskEnded) return error.result as number
    throw error
  }
}

/** Whether it may go better another time. */
function canPass(error: unknown): boolean {
  return (
    error instanceof UnavailableError || error instanceof IndeterminateError || error instanceof LostError
  )
}
