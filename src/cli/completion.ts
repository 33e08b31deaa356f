import { Argument, type Command, type Option } from 'commander'
import type { Application } from './application.js'
import type { Terminal } from './terminal.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

export function addCompletion(
  program: Command,
  stdout: Terminal['stdout'],
  applications: readonly Application[],
): void {
  program
    .command('completion')
    .description('print a script with which a shell completes the commands and options of signalbox')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action(async (shell: Shell) => {
      stdout.write(SCRIPTS[shell](await wordsOf(program, applications)))
    })
}

interface Word {
  readonly name: string
  readonly description: string
}

interface Entry extends Word {
  readonly options: readonly Word[]
}

function wordsOf(program: Command, applications: readonly Application[]): Promise<Entry[]> {
  const entries = program.commands.map(async command => {
    const application = applications.find(({ name }) => name === command.name())
    const { options } = (await application?.command()) ?? command
    return {
      name: command.name(),
      description: firstSentence(command.description()),
      options: options.map(optionWord),
    }
  })
  return Promise.all(entries)
}

function optionWord({ long, short, description }: Option): Word {
  return { name: long ?? short ?? '', description: firstSentence(description) }
}

/** Removes characters that are syntax in one of the shells. */
function firstSentence(text: string): string {
  return text.split(/[:;,.] /)[0]!.replaceAll(/['"`[\]\\$:]/g, '')
}

const SCRIPTS: Record<Shell, (entries: readonly Entry[]) => string> = { bash, zsh, fish }

/** After `--`, the shell completes the user's command itself. */
function bash(entries: readonly Entry[]): string {
  return `# bash completion of signalbox: source <(signalbox completion bash)
_signalbox() {
  local word=\${COMP_WORDS[COMP_CWORD]} index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    if [ "\${COMP_WORDS[index]}" = -- ]; then COMPREPLY=($(compgen -c -f -- "$word")); return; fi
  done
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${names(entries)}' -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${entries.map(({ name, options }) => `    ${name}) COMPREPLY=($(compgen -W '${names(options)}' -- "$word")) ;;`).join('\n')}
  esac
}
complete -o default -F _signalbox signalbox
`
}

function zsh(entries: readonly Entry[]): string {
  const listed = entries.map(({ name, description }) => `    '${name}:${description}'`).join('\n')
  const cases = entries.map(({ name, options }) => {
    const words = options.map(option => `'${option.name}:${option.description}'`).join(' ')
    return `    ${name}) options=(${words}) ;;`
  })
  return `#compdef signalbox
# zsh completion of signalbox: source <(signalbox completion zsh)
_signalbox() {
  local -a commands options
  commands=(
${listed}
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  if ((\${words[(I)--]} > 0 && \${words[(I)--]} < CURRENT)); then
    _normal
    return
  fi
  case \${words[2]} in
${cases.join('\n')}
  esac
  _describe option options || _files
}
compdef _signalbox signalbox
`
}

function fish(entries: readonly Entry[]): string {
  const lines = entries.flatMap(({ name, description, options }) => [
    `complete -c signalbox -n __fish_use_subcommand -f -a ${name} -d '${description}'`,
    ...options.map(
      option =>
        `complete -c signalbox -n '__fish_seen_subcommand_from ${name}' -l ${option.name.replace(/^--/, '')} -d '${option.description}'`,
    ),
  ])
  return `# fish completion of signalbox: signalbox completion fish | source\n${lines.join('\n')}\n`
}

function names(words: readonly Word[]): string {
  return words.map(({ name }) => name).join(' ')
}
