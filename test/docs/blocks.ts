/** A fenced code block of a documentation page. */
export interface Block {
  /** Path of the page, relative to the checkout. */
  readonly page: string
  /** Line of the page on which the code begins, counted from 1. */
  readonly line: number
  /** The word after the opening fence, or the empty string. */
  readonly language: string
  readonly code: string
  /**
   * The file in a hidden comment before the block, such as `<!-- setup: file test/docs/setup/db.ts -->`. Its exports
   * stand for things that a reader already has, such as a database.
   */
  readonly setup: string | undefined
  /**
   * A regular expression for the output of the block, from a hidden comment before it, such as
   * `<!-- output: ^97\n$ -->`.
   */
  readonly output: string | undefined
  /** The test that runs the block instead, from a hidden comment: `<!-- tested by: file test/interop/a.test.ts -->`. */
  readonly testedBy: string | undefined
}

const opening = /^(?<indent>\s*)(?<fence>`{3,}|~{3,})\s*(?<language>[\w+-]*)[^`]*$/
const comment =
  /^\s*<!--\s*(?:setup:\s*file\s+(?<setup>\S+)|tested by:\s*file\s+(?<testedBy>\S+)|output:\s*(?<output>.+?))\s*-->\s*$/

/**
 * Finds the fenced code blocks of a Markdown page, including those in list items.
 *
 * @throws Error if a block is not closed, or if no block follows a comment about one
 */
export function findBlocks(page: string, text: string): Block[] {
  const blocks: Block[] = []
  const lines = text.split(/\r?\n/)
  let said: Partial<Pick<Block, 'setup' | 'output' | 'testedBy'>> = {}
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index]!
    const start = opening.exec(line)?.groups
    if (start === undefined) {
      const { setup, output, testedBy } = comment.exec(line)?.groups ?? {}
      const isRepeated = [said.setup && setup, said.output && output, said.testedBy && testedBy].some(Boolean)
      const isOther = line.trim() !== '' && (setup ?? output ?? testedBy) === undefined
      if (isRepeated || (isOther && Object.keys(said).length > 0))
        throw new Error(`${page}:${index + 1}: the comment before this line has no code block after it`)
      said = { ...said, ...(setup && { setup }), ...(output && { output }), ...(testedBy && { testedBy }) }
      continue
    }
    const end = lines.findIndex((candidate, at) => at > index && closes(candidate, start['fence']!))
    if (end === -1) throw new Error(`${page}:${index + 1}: this code block is never closed`)
    blocks.push({
      page,
      line: index + 2,
      language: start['language']!,
      code: lines
        .slice(index + 1, end)
        .map(codeLine => withoutIndent(codeLine, start['indent']!.length))
        .join('\n'),
      setup: said.setup,
      output: said.output,
      testedBy: said.testedBy,
    })
    said = {}
    index = end
  }
  if (Object.keys(said).length > 0)
    throw new Error(`${page}: the comment at its end has no code block after it`)
  return blocks
}

function closes(line: string, fence: string): boolean {
  const text = line.trim()
  return text.length >= fence.length && text === fence[0]!.repeat(text.length)
}

function withoutIndent(line: string, width: number): string {
  return line.slice(Math.min(width, line.length - line.trimStart().length))
}
