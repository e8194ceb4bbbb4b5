import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "server", "**/*.mjs"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { project: "./tsconfig.json" } },
    rules: {
      "no-console": "error", // the output channel is where we speak
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
);
