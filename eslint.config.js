import { builtinModules } from 'node:module'
import eslint from '@eslint/js'
import prettier from 'eslint-config-prettier'
import { defineConfig } from 'eslint/config'
import globals from 'globals'
import tseslint from 'typescript-eslint'

const bareBuiltins = builtinModules.filter(name => !name.startsWith('_') && !name.startsWith('node:'))

export default defineConfig(
  {
    ignores: [
      '**/dist/',
      '**/build/',
      'build-docs/',
      'docs/.vitepress/.temp/',
      'coverage/',
      '.interop/',
      '**/fixtures/',
    ],
  },
  eslint.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      globals: globals.nodeBuiltin,
      // One program for all files: a run over the whole checkout takes less time than with the service for editors.
      parserOptions: {
        project: ['tsconfig.json', 'tsconfig.pages.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'no-var': 'error',
      'prefer-const': 'error',
      'object-shorthand': 'error',
      'no-constant-condition': ['error', { checkLoops: 'allExceptWhileTrue' }],
      'no-unmodified-loop-condition': 'error',
      'no-restricted-imports': [
        'error',
        { paths: bareBuiltins.map(name => ({ name, message: `Write 'node:${name}'.` })) },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/consistent-type-definitions': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: true }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/promise-function-async': 'off',
      '@typescript-eslint/return-await': ['error', 'in-try-catch'],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'all' },
      ],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true, allowAny: false, allowNullish: false },
      ],
      // An index that a loop has just bounded is known to be there; a check in hot code would be paid for.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Callers in plain JavaScript have no types: bad input is checked at run time although its type excludes it.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // What a function throws is the caller's: causes and abort reasons are passed on as they came.
      '@typescript-eslint/only-throw-error': [
        'error',
        { allowThrowingAny: true, allowThrowingUnknown: true },
      ],
      '@typescript-eslint/prefer-promise-reject-errors': [
        'error',
        { allowThrowingAny: true, allowThrowingUnknown: true },
      ],
      // A method that promises a promise throws through it, also where it has nothing to wait for.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/unified-signatures': 'off',
      // There is no enum here, and the private fields of a class let the compiler tell its instances from other objects.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      // A caller says what type a stored value has; the type stands in the result alone.
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
    },
  },
  {
    files: ['src/**/*.ts', 'packages/*/src/**/*.ts'],
    rules: {
      'no-console': 'error',
      'no-restricted-globals': [
        'error',
        { name: 'setInterval', message: 'Take the clock that is passed in, so that a test can drive it.' },
      ],
    },
  },
  { files: ['src/cli/**/*.ts', 'packages/conformance/src/*.process.ts'], rules: { 'no-console': 'off' } },
  // They run in a browser, whose time is the only one.
  { files: ['src/{console/page,page-kit/browser}/*.ts'], rules: { 'no-restricted-globals': 'off' } },
  // It checks what happens in real time.
  { files: ['packages/conformance/src/*.ts'], rules: { 'no-restricted-globals': 'off' } },
  {
    // Of the rules that need types, those that find a promise which nothing waits for are worth their time here.
    files: ['test/**/*.ts', 'packages/*/test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      ...tseslint.configs.disableTypeChecked.rules,
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
    },
  },
  {
    // What these import is not installed for the lint.
    files: [
      'packages/nestjs/**/*.ts',
      'test/interop/{nestjs,orms,queues}/*.{ts,mts}',
      'examples/nestjs/*.ts',
    ],
    ...tseslint.configs.disableTypeChecked,
    rules: {
      ...tseslint.configs.disableTypeChecked.rules,
      '@typescript-eslint/explicit-module-boundary-types': 'off',
    },
  },
  {
    // Nest reads at run time which class an injected parameter has, and its modules are classes without members.
    files: ['test/interop/nestjs/*.{ts,mts}', 'examples/nestjs/*.ts'],
    rules: {
      '@typescript-eslint/consistent-type-imports': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
    },
  },
  {
    // Plain JavaScript says its types in doc comments, which these rules don't read.
    files: ['**/*.mjs', '**/*.js'],
    rules: {
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/prefer-readonly': 'off',
    },
  },
  {
    // CommonJS for Jest, without types.
    files: ['examples/testing/jest/*.js'],
    languageOptions: {
      parserOptions: { project: false },
      sourceType: 'commonjs',
      globals: { ...globals.node, ...globals.jest },
    },
    rules: {
      ...tseslint.configs.disableTypeChecked.rules,
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/no-require-imports': 'off',
    },
  },
  prettier,
)
