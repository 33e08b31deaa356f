import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { systemClock } from '../base/clock.js'
import { LostError } from '../base/errors.js'
import { pause } from '../base/pause.js'
import { withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError, errorLine, EndedWith } from './failure.js'
import { Interrupt } from './interrupt.js'
import type { Terminal } from './terminal.js'
import { reporter, work } from './work.js'
import { addWorkOptions, labelOf, refuseCommandAsName, type WorkFlags } from './work-options.js'

/**
 * Pause between the end of the command and the next candidacy, in milliseconds. It prevents restarts in a tight loop.
 */
const PAUSE = 1000

export function addLead(program: Command, { stderr }: Terminal): void {
  const lead = program
    .command('lead')
    .description(
      'keep one copy of a command running in a fleet: run this on every host, and the elected leader runs the command',
    )
    .usage('NAME [options] -- COMMAND...')
    .argument('<name>', 'the name of the election', keyOf)
    .argument('<command...>', 'the command and its arguments')
  addWorkOptions(lead).action(async (name: string, command: readonly string[], options: WorkFlags) => {
    refuseCommandAsName(lead, command)
    const report = reporter(stderr, options.json === true)
    const again = (error: unknown): boolean => {
      // If the command can't be started here, trying again does not help.
      if (error instanceof CommandError) return false
      // If the command ran, its loss has been reported already.
      if (!(error instanceof LostError && error.taskEnded)) stderr.write(errorLine(error))
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
                report('granted', { name, token: String(grant.token) })
                return work(command, grant, options, report)
              },
              { lease: options.lease, signal, again },
            )
            if (signal.aborted) return ended
            await pause(PAUSE, systemClock, signal)
            signal.throwIfAborted()
          }
        }),
      { creates: true, label: labelOf(command) },
    )
    if (status !== EXIT.fine) throw new EndedWith(status)
  })
}
