import { Argument, type Command } from 'commander'
import type { Terminal } from './terminal.js'

interface SchemaOptions {
  schema?: string
}

export function addSchema(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('schema')
    .description(
      'print the SQL that creates the schema of an engine, for boxes whose user may not create it. It can be applied ' +
        'repeatedly. Comments at its end show the privileges that such a user needs',
    )
    .addArgument(new Argument('<engine>', 'the engine').choices(['postgres']))
    .option('--schema <name>', 'the name of the schema, as in the URL', 'signalbox')
    .action(async (_engine: string, { schema }: SchemaOptions) => {
      const { printedSchema } = await import('../engines/postgres/printed-schema.js')
      stdout.write(printedSchema(schema))
    })
}
