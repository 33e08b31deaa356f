import { isIP } from 'node:net'

/**
 * Returns the address or name of a client as proxies write it in `X-Forwarded-For` or `Forwarded` (RFC 7239), without
 * quotes, brackets and port. Of a list, it is the last one.
 */
export function forwardedNode(text: string): string {
  const node = unquoted(forOf(lastOf(text)))
  const [, inBrackets] = /^\[(.*)\](?::[\w.-]+)?$/.exec(node) ?? []
  if (inBrackets !== undefined) return inBrackets
  // Also removes the port of an IPv6 address without brackets, if the address has all eight groups.
  return isIP(node) ? node : node.replace(/:[\w.-]+$/, '')
}

function lastOf(list: string): string {
  for (const element of fromEnd(list, ',')) if (element !== '') return element
  return ''
}

/** Returns the value of the parameter `for` of an element of `Forwarded`; any other text as it is. */
function forOf(element: string): string {
  for (const pair of fromEnd(element, ';')) {
    const [, value] = /^for\s*=\s*(.*)$/is.exec(pair) ?? []
    if (value !== undefined) return value
  }
  return element
}

/**
 * Yields the parts between separators that are not in quotes, the last one first. Starts at the end, because otherwise
 * a quote that a client has left open would hide the text that the proxy has added.
 */
function* fromEnd(text: string, separator: string): Generator<string, void> {
  let end = text.length
  let isQuoted = false
  for (let index = end - 1; index >= 0; index--) {
    if (text[index] === '"' && !(isQuoted && text[index - 1] === '\\')) isQuoted = !isQuoted
    if (text[index] !== separator || isQuoted) continue
    yield text.slice(index + 1, end).trim()
    end = index
  }
  yield text.slice(0, end).trim()
}

function unquoted(text: string): string {
  const [, inside] = /^"(.*)"$/s.exec(text) ?? []
  return inside === undefined ? text : inside.replace(/\\(.)/gs, '$1').trim()
}
