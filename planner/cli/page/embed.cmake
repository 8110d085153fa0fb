# Writes the page's files into a header, so that the program needs none of them at run time:
#   cmake -DFOLDER=planner/cli/page -DHEADER=out.h -P embed.cmake
set(text "// Made by planner/cli/page/embed.cmake.\n#ifndef KVASIR_PLANNER_CLI_PAGE_PAGE_FILES_H_\n")
string(APPEND text "#define KVASIR_PLANNER_CLI_PAGE_PAGE_FILES_H_\n\n#include <string_view>\n\n")
string(APPEND text "namespace kvasir::cli {\n\n")
foreach(pair html:kPageForm css:kPageStyle js:kPageScript)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 kind)
  list(GET pair 1 name)
  file(READ ${FOLDER}/plan_page.${kind} content)
  string(APPEND text "inline constexpr std::string_view ${name} = R\"kvasir(${content})kvasir\";\n\n")
endforeach()
string(APPEND text "}  // namespace kvasir::cli\n\n#endif  // KVASIR_PLANNER_CLI_PAGE_PAGE_FILES_H_\n")
file(WRITE ${HEADER} "${text}")
