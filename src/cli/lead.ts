import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { systemClock } from '../clock.js'
import { LostError } from '../errors.js'
import { pause } from '../pause.js'
import { withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError, complaint, EndedWith } from './failure.js'
import { Interrupt } from './interrupt.js'
import type { Terminal } from './terminal.js'
import { teller, work } from './work.js'
import { addWorkOptions, labelOf, refuseCommandAsName, type WorkFlags } from './work-options.js'

/** After its command has ended it stands again: milliseconds. One that ends at once must not be started without end. */
const PAUSE = 1000

/** Adds `signalbox lead`. */
export function addLead(program: Command, { stderr }: Terminal): void {
  const lead = program
    .command('lead')
    .description(
      'keep one copy of a command running in a fleet: start it wherever this is run, and one leads',
    )
    .usage('NAME [options] -- COMMAND...')
    .argument('<name>', 'the name of the election', keyOf)
    .argument('<command...>', 'the command and its arguments')
  addWorkOptions(lead).action(async (name: string, command: readonly string[], options: WorkFlags) => {
    refuseCommandAsName(lead, command)
    const tell = teller(stderr, options.json === true)
    const again = (error: unknown): boolean => {
      // A command that can't be started here does not start at the next try.
      if (error instanceof CommandError) return false
      // The loss of a command that ran has been told.
      if (!(error instanceof LostError && error.taskEnded)) stderr.write(complaint(error))
      return true
    }
    using interrupt = new Interrupt()
    const status = await withBox(
      options.engine,
      box =>
        interrupt.during(async signal => {
          for (;;) {
            const ended = await box.election(name).lead(
              grant => {
                signal.throwIfAborted()
                tell('granted', { name, token: String(grant.token) })
                return work(command, grant, options, tell)
              },
              { lease: options.lease, signal, again },
            )
            if (signal.aborted) return ended
            await pause(PAUSE, systemClock, signal)
            signal.throwIfAborted()
          }
        }),
      { makes: true, label: labelOf(command) },
    )
    if (status !== EXIT.fine) throw new EndedWith(status)
  })
}
