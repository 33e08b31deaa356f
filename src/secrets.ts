const HIDDEN = '***'
/** Names of parameters whose values are secrets, in URLs and in connection strings such as `host=db password=…`. */
const PARAMETER =
  /((?:^|[?&;,\s])[^=&;,\s]*(?:pass|pwd|secret|token|auth|credential|key)[^=&;,\s]*\s*=)[^&;]*/gi
/** What comes between the scheme, or its slashes, and the last `@` of the same word. */
const IN_WORD = /(\/\/)\S*@/g
/** A password may have blanks in it: from a user and a colon that is not before a port to the last `@`. */
const WITH_BLANKS = /(\/\/)[^\s/@]*:(?!\d{1,5}(?:[\s/,?#]|$))[^]*@/g
/** Without slashes a scheme is followed by user and password. */
const WITHOUT_SLASHES = /(^\s*[a-z][\w+.-]*:\/?)[^\s/:@]*:[^]*@/i
/** An address ends behind the password: what follows the colon is not a port. */
const WITHOUT_HOST = /(\/\/[^\s/:@[\],]*:)(?!\d{1,5}(?:[\s/,?#]|$))[^\s/@,*]+/g

/**
 * A text without the passwords of the URLs in it. Every text goes through it that may carry a URL, however it is
 * misspelt; so it hides too much rather than too little.
 */
export function withoutSecrets(text: string): string {
  return text
    .replace(WITH_BLANKS, `$1${HIDDEN}@`)
    .replace(IN_WORD, `$1${HIDDEN}@`)
    .replace(WITHOUT_SLASHES, `$1${HIDDEN}@`)
    .replace(WITHOUT_HOST, `$1${HIDDEN}`)
    .replace(PARAMETER, `$1${HIDDEN}`)
}
